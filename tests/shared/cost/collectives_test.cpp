// Collectives in closed form: protocols, all-to-all, uplinks; domains and shared NICs:
// tests/shared/hardware/topology_test.cpp. Expected times are worked out by hand from the formulas
// of nccl-tests doc/PERFORMANCE.md and the constants of NCCL's and RCCL's src/graph/tuning.cc.
#include "shared/cost/collectives.h"

#include <doctest/doctest.h>

#include "shared/cost/message_time.h"

namespace polyphony {
namespace {

using Kind = CollectiveKind;

std::vector<Rank> ranks_from(int first, int count, int stride = 1) {
  std::vector<Rank> members;
  for (int i = 0; i < count; ++i)
    members.emplace_back(static_cast<std::size_t>(first + i * stride));
  return members;
}

// 100 GB/s and 1 us inside a node, 10 GB/s and 5 us a NIC.
Cluster cluster_of(int nodes, int ranks_per_node) {
  Cluster cluster;
  cluster.nodes = nodes;
  cluster.ranks_per_node = ranks_per_node;
  cluster.node_link = {BytesPerSecond(100e9), Seconds(1e-6)};
  cluster.fabric_link = {BytesPerSecond(10e9), Seconds(5e-6)};
  return cluster;
}

// All of the links' rates; 2 us a hop with Gloo.
HardwareProfile plain(CollectiveLibrary library = CollectiveLibrary::gloo) {
  HardwareProfile profile;
  profile.collective_efficiency = profile.fabric_efficiency = 1;
  profile.collective_latency = Seconds(2e-6);
  profile.collectives = library;
  return profile;
}

double microseconds(const Ring& ring, Kind kind, std::int64_t bytes) {
  return ring_time(ring, kind, Bytes(bytes)).count() * 1e6;
}
double gigabytes(BytesPerSecond rate) { return rate.value / 1e9; }

}  // namespace

TEST_CASE("on free links a collective takes no time") {
  Cluster free = cluster_of(2, 4);
  free.free_links = true;
  for (const CollectiveLibrary library :
       {CollectiveLibrary::gloo, CollectiveLibrary::nccl, CollectiveLibrary::rccl})
    for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::all_to_all}) {
      CHECK(microseconds(make_ring(ranks_from(0, 8), free, plain(library)), kind, 1 << 30) == 0);
      CHECK(microseconds(make_ring(ranks_from(0, 8), cluster_of(2, 4), plain(library)), kind,
                         1 << 30) > 0);
    }
}

TEST_CASE("hops and bytes over an edge of the ring") {
  // n = 4: an all-reduce passes 2·(n − 1) parts over each edge, other collectives n − 1.
  CHECK(ring_hops(Kind::all_reduce, 4) == 6);
  CHECK(ring_hops(Kind::all_reduce_max, 4) == 6);
  CHECK(ring_hops(Kind::all_gather, 4) == 3);
  CHECK(ring_hops(Kind::reduce_scatter, 4) == 3);
  CHECK(ring_hops(Kind::all_to_all, 4) == 3);
  CHECK(ring_bytes(Kind::all_reduce, 4, Bytes(800)) == Bytes(1200));
  CHECK(ring_bytes(Kind::all_reduce_max, 4, Bytes(800)) == Bytes(1200));
  CHECK(ring_bytes(Kind::all_gather, 4, Bytes(800)) == Bytes(600));
  CHECK(ring_bytes(Kind::reduce_scatter, 4, Bytes(800)) == Bytes(600));
  CHECK(ring_bytes(Kind::all_to_all, 4, Bytes(800)) == Bytes(600));
  CHECK(ring_hops(Kind::all_reduce, 1) == 0);
  CHECK(ring_bytes(Kind::all_gather, 1, Bytes(800)) == Bytes(0));
}

TEST_CASE("NCCL's rings: LL for small, LL128 for medium, Simple for large arrays") {
  const Ring node = make_ring(ranks_from(0, 8), cluster_of(4, 8), plain(CollectiveLibrary::nccl));
  // An all-gather has 7 hops and moves 7/8 of the array at 100e9 B/s.
  // LL: 6.6 + 7·0.6 = 10.8 us, half the rate: 700 bytes in 0.014 us.
  CHECK(microseconds(node, Kind::all_gather, 800) == doctest::Approx(10.814));
  // LL128: 14 + 7·1.9 = 27.3 us, 0.92 of the rate: 3.5e6 bytes in 38.0435 us.
  CHECK(microseconds(node, Kind::all_gather, 4'000'000) == doctest::Approx(27.3 + 3500 / 92.0));
  CHECK(microseconds(node, Kind::reduce_scatter, 4'000'000) == doctest::Approx(27.3 + 3500 / 92.0));
  // Simple: 8.4 + 7·3.4 = 32.2 us: 70e6 bytes in 700 us.
  CHECK(microseconds(node, Kind::all_gather, 80'000'000) == doctest::Approx(732.2));
  // LL128 of an all-reduce: 14 + 14·1.9 = 40.6 us; 3.5e6 bytes.
  CHECK(microseconds(node, Kind::all_reduce, 2'000'000) == doctest::Approx(40.6 + 3500 / 92.0));
  const Protocol small = choose_protocol(node, Kind::all_gather, Bytes(800));
  CHECK(small.share == 0.5);
  CHECK(small.latency.count() == doctest::Approx(10.8e-6));
}

TEST_CASE("reduction in the switch: one hop, and a link carries S(1 + 1/n)") {
  HardwareProfile profile = plain(CollectiveLibrary::nccl);
  profile.in_switch_efficiency = 0.85;
  const Ring node = make_ring(ranks_from(0, 8), cluster_of(4, 8), profile);
  // 80 MB over 8 ranks: 25 us + 80e6·9/8 bytes at 0.85 · 100e9 B/s = 1,058.8 us; a ring 1,456 us.
  CHECK(microseconds(node, Kind::all_reduce, 80'000'000) == doctest::Approx(25 + 90e3 / 85));
  CHECK(microseconds(make_ring(ranks_from(0, 8), cluster_of(4, 8), plain(CollectiveLibrary::nccl)),
                     Kind::all_reduce, 80'000'000) == doctest::Approx(8.4 + 14 * 3.4 + 1400));
  // Small arrays stay with rings; gathers and groups of several nodes do not change.
  CHECK(microseconds(node, Kind::all_reduce, 800) == doctest::Approx(6.6 + 14 * 0.6 + 0.028));
  CHECK(microseconds(node, Kind::all_gather, 80'000'000) == doctest::Approx(732.2));
  const auto two = [&](const HardwareProfile& p) {
    return microseconds(make_ring(ranks_from(0, 16), cluster_of(4, 8), p), Kind::all_reduce,
                        80'000'000);
  };
  CHECK(two(profile) == two(plain(CollectiveLibrary::nccl)));
}

TEST_CASE("NCCL's trees: all-reduces between nodes, 2 log2 of the nodes") {
  // 4 nodes of 8, 8 NICs: 80e9 B/s. 2·7 hops inside, 2·log2(4) = 4 between.
  const Ring all = make_ring(ranks_from(0, 32), cluster_of(4, 8), plain(CollectiveLibrary::nccl));
  CHECK(gigabytes(all.rate) == doctest::Approx(80));
  // LL128: 14 + 14·1.25 + 4·8.5 = 65.5 us, 0.85: 62/32 · 16e6 = 31e6 bytes at 68e9.
  CHECK(microseconds(all, Kind::all_reduce, 16'000'000) == doctest::Approx(65.5 + 31e3 / 68));
  // Simple: 8.4 + 14·4 + 4·14 = 120.4 us, 0.92: 62e6 bytes at 73.6e9.
  CHECK(microseconds(all, Kind::all_reduce, 32'000'000) == doctest::Approx(120.4 + 62e3 / 73.6));
  // Only sums to all have trees: 31 hops of a ring, 3 of them between nodes, LL:
  // 6.6 + 28·0.6 + 3·2.7 = 31.5 us; 31 bytes.
  CHECK(microseconds(all, Kind::all_gather, 32) == doctest::Approx(31.5).epsilon(1e-4));
  // 8 nodes of one rank: 2·log2(8) = 6 hops, none inside; LL 6.8 + 6·5 = 36.8 us.
  const Ring thin =
      make_ring(ranks_from(0, 8, 8), cluster_of(8, 8), plain(CollectiveLibrary::nccl));
  CHECK(microseconds(thin, Kind::all_reduce, 8) == doctest::Approx(36.8).epsilon(1e-3));
}

TEST_CASE("a mesh: n ranks have n - 1 links each, and RCCL's protocols") {
  Cluster mesh = cluster_of(2, 8);
  mesh.node_link.rate = BytesPerSecond(448e9);
  mesh.peer_link = BytesPerSecond(64e9);
  HardwareProfile profile = plain(CollectiveLibrary::rccl);
  const auto ring = [&](int count) { return make_ring(ranks_from(0, count), mesh, profile); };
  CHECK(gigabytes(ring(2).rate) == doctest::Approx(64));
  CHECK(gigabytes(ring(4).rate) == doctest::Approx(3 * 64));
  CHECK(gigabytes(ring(8).rate) == doctest::Approx(7 * 64));
  CHECK(ring(4).links == doctest::Approx(3 / 7.0));
  CHECK(ring(16).links == 1);  // eight in each node
  // Simple: 17 + 2·2.1 us, and all 640 MB over one link; 17 + 3·2.1 us, 3/4 of 256 MB over three
  // links; 17 + 14·2.1 us, 14/8 of 256 MB over seven.
  CHECK(microseconds(ring(2), Kind::all_reduce, 640'000'000) == doctest::Approx(21.2 + 10'000));
  CHECK(microseconds(ring(4), Kind::all_gather, 256'000'000) == doctest::Approx(23.3 + 1000));
  CHECK(microseconds(ring(8), Kind::all_reduce, 256'000'000) == doctest::Approx(46.4 + 1000));
  // LL: 12 + 14·0.8 us; 1,400 bytes at 0.08 of 448e9.
  CHECK(microseconds(ring(8), Kind::all_reduce, 800) == doctest::Approx(23.2 + 1.4 / 35.84));
  // An exchange uses all links once, at 0.88 of a ring's rate: 17 + 2.1 us, 7/8 of 8 GB.
  CHECK(microseconds(ring(8), Kind::all_to_all, 8'000'000'000) ==
        doctest::Approx(19.1 + 7e6 / (0.88 * 448)));
  // Trees between nodes: 17 + 14·2.3 + 2·25 us, 0.59 of the NICs' 80e9; rings are faster for large
  // arrays: 17 + 28·2.1 + 2·25 us, 30/16 of 1.6 GB at 80e9.
  CHECK(microseconds(ring(16), Kind::all_reduce, 1'600'000'000) ==
        doctest::Approx(125.8 + 3e6 / 80));
  // A message has one link: 64 MB in 1 ms. A switch gives it all of them.
  profile.message_efficiency = 1;
  profile.message_latency = Seconds(0);
  const auto message = [&] {
    return MessageTimes(mesh, profile).of(Rank(0), Rank(1), Bytes(64'000'000)).count() * 1e6;
  };
  CHECK(message() == doctest::Approx(1 + 1000));
  mesh.peer_link = {};
  CHECK(message() == doctest::Approx(1 + 1000 / 7.0));
}

TEST_CASE("all-to-all: all transfers at once, one hop of each kind") {
  const Ring node = make_ring(ranks_from(0, 8), cluster_of(4, 8), plain(CollectiveLibrary::nccl));
  // NVLink carries 0.60 / 0.74 = 0.81 of a ring's rate. LL: 6.6 + 0.6 us, 700 bytes at 40.5e9.
  CHECK(gigabytes(node.exchange) == doctest::Approx(81));
  CHECK(microseconds(node, Kind::all_to_all, 800) == doctest::Approx(7.2 + 0.7 / 40.5));
  // Simple: 8.4 + 3.4 us; 7e9 bytes at 81e9.
  CHECK(microseconds(node, Kind::all_to_all, 8'000'000'000) == doctest::Approx(11.8 + 7e6 / 81));
  // Between nodes a hop of the network more: LL 6.6 + 0.6 + 2.7 us. Of 31 parts that a rank of 32
  // sends, 24 leave the node through its NIC: 10e9 · 31/24.
  const Ring all = make_ring(ranks_from(0, 32), cluster_of(4, 8), plain(CollectiveLibrary::nccl));
  CHECK(gigabytes(all.exchange) == doctest::Approx(10 * 31 / 24.0));
  CHECK(microseconds(all, Kind::all_to_all, 32) == doctest::Approx(9.9).epsilon(1e-3));
  // With Gloo all of the rate, and its 7 hops of 2 + 1 us.
  const Ring other = make_ring(ranks_from(0, 8), cluster_of(4, 8), plain());
  CHECK(microseconds(other, Kind::all_to_all, 8'000'000) == doctest::Approx(21 + 70));
}

TEST_CASE("copies of a row that remain if each place receives at most one") {
  // places · (1 − C(E − E/places, k) / C(E, k)) / k
  CHECK(distinct_share(4, {}) == 1);        // no choices: one copy each
  CHECK(distinct_share(4, {1, 8}) == 1);    // one expert, one copy
  CHECK(distinct_share(8, {2, 8}) == 1);    // an expert a place: never two at one
  CHECK(distinct_share(1, {2, 8}) == 0.5);  // all at one place: one copy of two
  CHECK(distinct_share(4, {8, 8}) == 0.5);  // every expert: 4 copies of 8
  // 2 of 4 experts, 2 places of 2: C(2,2)/C(4,2) = 1/6 that a place has none: 2 · 5/6 / 2.
  CHECK(distinct_share(2, {2, 4}) == doctest::Approx(5 / 6.0));
  // 2 of 8, 2 places: C(4,2)/C(8,2) = 6/28: 2 · 22/28 / 2 = 11/14.
  CHECK(distinct_share(2, {2, 8}) == doctest::Approx(11 / 14.0));
  // 3 of 6, 3 places of 2: C(4,3)/C(6,3) = 4/20: 3 · 16/20 / 3 = 4/5.
  CHECK(distinct_share(3, {3, 6}) == doctest::Approx(0.8));
}

TEST_CASE("one copy per node and rank: fewer bytes leave the node") {
  const ExpertChoice two_of_eight{2, 8};
  // 2 nodes of 4 ranks, an expert each: a rank gets one copy anyway, a node 11/14 of two. Of the
  // 7e6 bytes of 8e6 that are not a rank's own, 4e6 · 11/14 leave at 10e9 B/s; 7 hops of 7 us.
  const Ring across =
      make_ring(ranks_from(0, 8), cluster_of(2, 4), plain(), Others::idle, two_of_eight);
  CHECK(microseconds(across, Kind::all_to_all, 8'000'000) == doctest::Approx(49 + 400 * 11 / 14.0));
  // Rings carry no rows of experts: no change.
  CHECK(across.rate == make_ring(ranks_from(0, 8), cluster_of(2, 4), plain()).rate);
  // A rank of each of 2 nodes, 4 experts a rank: half of 8e6, of it 11/14; a hop of 7 us.
  const Ring apart =
      make_ring(ranks_from(0, 2, 4), cluster_of(2, 4), plain(), Others::idle, two_of_eight);
  CHECK(microseconds(apart, Kind::all_to_all, 8'000'000) == doctest::Approx(7 + 400 * 11 / 14.0));
  // 4 ranks of one node with 2 experts each: 1 − C(6,2)/C(8,2) = 13/28, 4 · 13/28 / 2 = 13/14 of
  // 6e6 bytes at 100e9; 3 hops of 3 us.
  const Ring inside =
      make_ring(ranks_from(0, 4), cluster_of(2, 4), plain(), Others::idle, two_of_eight);
  CHECK(microseconds(inside, Kind::all_to_all, 8'000'000) == doctest::Approx(9 + 60 * 13 / 14.0));
}

TEST_CASE("uplinks of leaf switches, shared by all that cross them") {
  Cluster cluster = cluster_of(4, 4);
  cluster.leaf = {.nodes = 2, .oversubscription = 2, .rails = 1};
  // 8 NICs under a leaf, uplinks of 8 · 10 / 2 = 40e9 B/s.
  // Rings over a rank of each leaf, 8 of them side by side: 5e9 each; alone a NIC's rate.
  CHECK(gigabytes(make_ring(ranks_from(0, 2, 8), cluster, plain(), Others::alike).rate) ==
        doctest::Approx(5));
  CHECK(gigabytes(make_ring(ranks_from(0, 2, 8), cluster, plain()).rate) == 10);
  // Over a rank of each node, 4 of them: a ring crosses once each way, 10e9.
  const Ring nodes = make_ring(ranks_from(0, 4, 4), cluster, plain(), Others::alike);
  CHECK(gigabytes(nodes.rate) == doctest::Approx(10));
  // All-to-all there: 2 of 3 parts leave the leaf, of 8 ranks r · 2/3 · 8 = 40e9.
  CHECK(gigabytes(nodes.exchange) == doctest::Approx(7.5));
  // All ranks: one ring of 4 channels, the uplinks' rate. All-to-all: 8 of 15 parts leave the leaf,
  // r · 8/15 · 8 = 40e9: 9.375e9; through NICs 12 of 15 leave the node, 12.5e9.
  const Ring all = make_ring(ranks_from(0, 16), cluster, plain(), Others::alike);
  CHECK(gigabytes(all.rate) == doctest::Approx(40));
  CHECK(gigabytes(all.exchange) == doctest::Approx(9.375));
  // Under one leaf nothing crosses.
  CHECK(gigabytes(make_ring(ranks_from(0, 2, 4), cluster, plain(), Others::alike).rate) == 10);
}

TEST_CASE("a rank that uses its neighbor's NIC: fewer channels") {
  Cluster cluster = cluster_of(2, 4);
  cluster.degraded = {{1, 1, 1, 0, 0}};
  // 7 NICs for 8 members, 3.5 a node.
  CHECK(gigabytes(make_ring(ranks_from(0, 8), cluster, plain()).rate) == doctest::Approx(35));
}

}  // namespace polyphony
