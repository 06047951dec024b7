// Clusters that are not flat: which links transfers cross, and what that costs, computed by hand.
#include <doctest/doctest.h>

#include <algorithm>

#include "shared/check/check.h"
#include "shared/cost/cost_model.h"
#include "shared/cost/degraded.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/network.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/hand_made.h"
#include "tests/shared/support/round_machine.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

std::vector<Rank> ranks(int count, int stride = 1) {
  std::vector<Rank> members;
  for (int i = 0; i < count; ++i) members.emplace_back(static_cast<std::size_t>(i * stride));
  return members;
}

// Efficiencies: half of the node link, 0.4 of the fabric, 2 us per hop.
HardwareProfile profile_of_equal_rates() {
  HardwareProfile profile;
  profile.device = {"round", FlopsPerSecond(1e12), FlopsPerSecond(10e12),
                    {},      BytesPerSecond(1e9),  Bytes(1 << 30)};
  profile.collective_latency = Seconds(2e-6);
  profile.collective_efficiency = 0.5;
  profile.fabric_efficiency = 0.4;
  profile.op_overhead = Seconds(1e-4);
  profile.optimizer_overhead = Seconds(1e-3);
  return profile;
}

double all_reduce(const std::vector<Rank>& members, const Cluster& cluster,
                  Others others = Others::idle) {
  return ring_time(make_ring(members, cluster, profile_of_equal_rates(), others),
                   CollectiveKind::all_reduce, Bytes(8'000'000))
      .count();
}
double all_to_all(const std::vector<Rank>& members, const Cluster& cluster) {
  return ring_time(make_ring(members, cluster, profile_of_equal_rates(), Others::alike),
                   CollectiveKind::all_to_all, Bytes(8'000'000))
      .count();
}

std::vector<std::uint32_t> links(const Network& network, std::size_t a, std::size_t b) {
  const Crossing crossing = network.crossing(Rank(a), Rank(b));
  return {crossing.begin(), crossing.end()};
}

Layout data_parallel(int all, int tp = 1) {
  ModuleLayout grid;
  grid.tp = tp;
  grid.ranks = all;
  return {.placement = Placement::homogeneous, .modules = {grid, grid, grid}, .microbatches = 1};
}

std::string reading(const std::string& cluster) {
  std::string text = test::file_text("scenarios/tiny.json");
  const std::string from = R"({"node": "this-machine", "ranks": 2})";
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), cluster);
}

}  // namespace

TEST_CASE("ranks, NICs and leaf switches are numbered in order") {
  Cluster cluster;
  cluster.nodes = 4;
  cluster.ranks_per_node = 8;
  cluster.nics = 4;
  cluster.leaf = {.nodes = 2, .oversubscription = 4, .rails = 2};
  // Rank 5 uses the third NIC of node 0, which has an even index, so the first leaf. Rank 19 is the
  // fourth rank of node 2 and uses its NIC 1, so the second leaf of the second group.
  CHECK(cluster.nic_of(Rank(5)) == 2);
  CHECK(cluster.leaf_of(Rank(5)) == 0);
  CHECK(cluster.nic_of(Rank(19)) == 9);
  CHECK(cluster.leaf_of(Rank(19)) == 3);
  CHECK_FALSE(cluster.flat());
  // A leaf connects the 2 NICs of a rail in each of 2 nodes; its uplinks have a quarter of their
  // rate.
  cluster.fabric_link.rate = BytesPerSecond(10e9);
  CHECK(leaf_rate(cluster).value == doctest::Approx(10e9));
}

TEST_CASE("a transfer crosses the switch, or the bus, NICs and leaves") {
  Cluster cluster = examples::two_nodes();
  const Network flat = make_network(cluster, 8);
  CHECK_FALSE(flat.shaped);
  CHECK(links(flat, 0, 3) == std::vector<std::uint32_t>{0, 7});
  CHECK(links(flat, 0, 4) == std::vector<std::uint32_t>{16, 25});
  cluster.domain = 2;
  cluster.bus = {BytesPerSecond(20e9), Seconds(2e-6)};
  cluster.nics = 2;
  cluster.leaf = {.nodes = 1, .oversubscription = 4, .rails = 1};
  cluster.degraded = {{.rank = 1, .link = 0.5, .nic = 0.25, .nic_of = {}}};
  const Network network = make_network(cluster, 8);
  CHECK(links(network, 0, 1) == std::vector<std::uint32_t>{0, 3});
  CHECK(links(network, 0, 2) == std::vector<std::uint32_t>{2 * 16, 2 * 18 + 1});
  // Rank 1's bus, NIC 0 of ranks 0 and 1, leaf 0 up, leaf 1 down, NIC 2 of ranks 4 and 5, rank 4's
  // bus.
  CHECK(links(network, 1, 4) == std::vector<std::uint32_t>{34, 16, 48, 51, 21, 41});
  CHECK(network.rate(Rank(0), Rank(1)).value == doctest::Approx(50e9));
  CHECK(network.rate(Rank(0), Rank(2)).value == doctest::Approx(20e9));
  CHECK(network.rate(Rank(0), Rank(4)).value == doctest::Approx(2.5e9));  // rank 1 also uses NIC 0
  CHECK(network.rate(Rank(2), Rank(6)).value == doctest::Approx(5e9));    // uplinks: 2·10/4
}

TEST_CASE("rings over pairs connected by a bus, and over a domain of several nodes") {
  Cluster cluster = examples::two_nodes();
  cluster.domain = 2;
  cluster.bus = {BytesPerSecond(20e9), Seconds(2e-6)};
  // 4 ranks of a node: 6 hops of 2 + 2 us, 12e6 bytes at half of 20e9 B/s.
  CHECK(all_reduce(ranks(4), cluster) == doctest::Approx(24e-6 + 1.2e-3));
  // A pair: 2 hops of 2 + 1 us, 8e6 bytes at 50e9 B/s.
  CHECK(all_reduce(ranks(2), cluster) == doctest::Approx(6e-6 + 160e-6));
  // One rank of each pair: only the bus.
  CHECK(all_reduce(ranks(2, 2), cluster) == doctest::Approx(8e-6 + 800e-6));
  cluster.domain = 8;
  // All 8 on one switch: 14 hops of 3 us, 14e6 bytes at 50e9 B/s.
  CHECK(all_reduce(ranks(8), cluster) == doctest::Approx(42e-6 + 280e-6));
}

TEST_CASE("NICs shared by ranks") {
  Cluster cluster = examples::two_nodes();
  cluster.nics = 2;
  // All 8: two rings through two NICs of 4e9 B/s: 14 hops of 7 us, 14e6 bytes at 8e9 B/s.
  CHECK(all_reduce(ranks(8), cluster) == doctest::Approx(98e-6 + 1.75e-3));
  CHECK(all_reduce(ranks(8), cluster, Others::alike) == doctest::Approx(98e-6 + 1.75e-3));
  // One rank of each node gets a whole NIC if the rank that shares it is silent, otherwise half of
  // it.
  CHECK(all_reduce(ranks(2, 4), cluster) == doctest::Approx(14e-6 + 2e-3));
  CHECK(all_reduce(ranks(2, 4), cluster, Others::alike) == doctest::Approx(14e-6 + 4e-3));
  // Of the 7e6 bytes that a rank sends, 4e6 leave the node at half of a NIC's rate.
  CHECK(all_to_all(ranks(8), cluster) == doctest::Approx(49e-6 + 2e-3));
}

TEST_CASE("transfers to a NIC cross the accelerator's bus") {
  Cluster cluster = examples::two_nodes();
  CHECK(all_reduce(ranks(2, 4), cluster) == doctest::Approx(14e-6 + 2e-3));  // 8e6 bytes at 4e9 B/s
  // A bus with half the NIC's rate: the two rings of its pairs get half of 5e9 B/s.
  cluster.domain = 2;
  cluster.bus = {BytesPerSecond(5e9), Seconds(2e-6)};
  CHECK(all_reduce(ranks(2, 4), cluster) == doctest::Approx(14e-6 + 4e-3));
  CHECK(all_reduce(ranks(8), cluster) == doctest::Approx(98e-6 + 14e6 / 2.5e9));
  CHECK(make_network(cluster, 8).rate(Rank(1), Rank(5)).value == doctest::Approx(5e9));
  // The bus also counts if one switch connects the node.
  cluster.domain = 0;
  CHECK_FALSE(cluster.flat());
  CHECK(all_reduce(ranks(2, 4), cluster) == doctest::Approx(14e-6 + 4e-3));
  CHECK(all_reduce(ranks(4), cluster) ==
        doctest::Approx(all_reduce(ranks(4), examples::two_nodes())));
}

TEST_CASE("24 accelerators in 6 nodes of two pairs gather over one NIC each") {
  Cluster cluster = examples::two_nodes();
  cluster.nodes = 6;
  cluster.domain = 2;
  cluster.bus = {BytesPerSecond(31.5e9), Seconds(2e-6)};
  cluster.nics = 1;
  cluster.fabric_link.rate = BytesPerSecond(25e9);
  const Bytes all(24'000'000'000);
  const auto gather = [&] {
    return ring_time(make_ring(ranks(24), cluster, profile_of_equal_rates()),
                     CollectiveKind::all_gather, all)
        .count();
  };
  // 23 hops of 2 + 5 us; 23/24 of the bytes enter each node, at 0.4 of 25e9 B/s.
  CHECK(gather() == doctest::Approx(23 * 7e-6 + 23e9 / 10e9));
  // With one NIC per rank the bus between the pairs is the limit, at half of 31.5e9 B/s.
  cluster.nics = 0;
  CHECK(gather() == doctest::Approx(23 * 7e-6 + 23e9 / 15.75e9));
  // One connection per NIC.
  cluster.nics = 1;
  cluster.connection = BytesPerSecond(1e9);
  CHECK(gather() == doctest::Approx(23 * 7e-6 + 23e9 / 0.4e9));
}

TEST_CASE("a connection limits each transfer, not the NIC") {
  Cluster cluster = examples::two_nodes();
  cluster.connection = BytesPerSecond(2e9);
  CHECK_FALSE(cluster.flat());
  const Network network = make_network(cluster, 8);
  CHECK(network.rate(Rank(0), Rank(4)).value == doctest::Approx(2e9));
  CHECK(network.rate(Rank(0), Rank(1)).value == doctest::Approx(100e9));
  // Four rings through four NICs: 14e6 bytes at 0.4 of 8e9 B/s; one rank per node: 8e6 at 0.4 of
  // 2e9.
  CHECK(all_reduce(ranks(8), cluster) == doctest::Approx(98e-6 + 14e6 / 3.2e9));
  CHECK(all_reduce(ranks(2, 4), cluster) == doctest::Approx(14e-6 + 10e-3));
  // One NIC for four ranks: four connections of 2e9 B/s fit into its 10e9 B/s, four of 5e9 do not.
  cluster.nics = 1;
  CHECK(all_reduce(ranks(2, 4), cluster, Others::alike) == doctest::Approx(14e-6 + 10e-3));
  cluster.connection = BytesPerSecond(5e9);
  CHECK(all_reduce(ranks(2, 4), cluster) == doctest::Approx(14e-6 + 4e-3));
  CHECK(all_reduce(ranks(2, 4), cluster, Others::alike) == doctest::Approx(14e-6 + 8e-3));
  // An all-to-all has one connection for each of a rank's 7 parts. As without a limit, 4e6 of its
  // bytes leave at a quarter of 4e9 B/s; with connections of 0.1e9 B/s, 7e6 bytes at 0.4 of 0.7e9.
  CHECK(all_to_all(ranks(8), cluster) == doctest::Approx(49e-6 + 4e-3));
  cluster.connection = BytesPerSecond(0.1e9);
  CHECK(all_to_all(ranks(8), cluster) == doctest::Approx(49e-6 + 7e6 / 0.28e9));
}

TEST_CASE("a leaf with 4:1 oversubscription makes what leaves it four times slower") {
  Cluster cluster = examples::two_nodes();
  cluster.leaf = {.nodes = 1, .oversubscription = 1, .rails = 1};
  const double open = all_to_all(ranks(8), cluster), hops = 49e-6;
  // 4e6 bytes of each rank at 4e9 B/s.
  CHECK(open == doctest::Approx(hops + 1e-3));
  CHECK(open == doctest::Approx(all_to_all(ranks(8), examples::two_nodes())));
  cluster.leaf.oversubscription = 4;
  CHECK(all_to_all(ranks(8), cluster) == doctest::Approx(hops + 4e-3));
  // The rings of all 8, through 4 NICs: 14e6 bytes at 16e9 B/s, and at a quarter of that.
  CHECK(all_reduce(ranks(8), cluster) == doctest::Approx(98e-6 + 875e-6));
  CHECK(all_reduce(ranks(8), cluster, Others::alike) == doctest::Approx(98e-6 + 4 * 875e-6));
  // Both nodes under one leaf: nothing leaves it.
  cluster.leaf.nodes = 2;
  CHECK(all_to_all(ranks(8), cluster) == doctest::Approx(hops + 1e-3));
  // With leaves of one node, 7 of 8 pairs of ranks in different nodes leave their leaf; n = 2: 4e6
  // bytes at 1e9 B/s.
  cluster.leaf.nodes = 1;
  CHECK(all_to_all(ranks(2, 4), cluster) == doctest::Approx(7e-6 + 4e-3));
}

TEST_CASE("a slow link limits the collectives of its group") {
  Cluster cluster = examples::two_nodes();
  cluster.degraded = {{.rank = 2, .link = 0.25, .nic = 0.5, .nic_of = {}}};
  CHECK(all_reduce(ranks(4), cluster) == doctest::Approx(18e-6 + 4 * 240e-6));
  CHECK(all_reduce(ranks(2), cluster) == doctest::Approx(6e-6 + 160e-6));
  // All 8: min(inside 12.5e9, four channels of 2e9) B/s.
  CHECK(all_reduce(ranks(8), cluster) == doctest::Approx(98e-6 + 14e6 / 8e9));
}

TEST_CASE("a slow device slows its ops, and those of its tensor-parallel group") {
  Scenario scenario = examples::small_on_cpu(4, 4);
  const HardwareProfile profile = profile_of_equal_rates();
  for (const int tp : {1, 2}) {
    const Layout layout = data_parallel(4, tp);
    REQUIRE_FALSE(check_layout(scenario, layout).has_value());
    const Program program =
        lower(scenario, layout, make_plan(scenario, layout), typical_batch(scenario));
    scenario.cluster.degraded.clear();
    const Cluster sound = scenario.cluster;
    scenario.cluster.degraded = {{.rank = 3, .device = 0.5, .nic_of = {}}};
    HardwareProfile half = profile;
    half.device.fp32 = half.device.fp32 / 2.0;
    half.device.bf16 = half.device.bf16 / 2.0;
    half.device.memory_rate = half.device.memory_rate / 2.0;
    int slowed = 0;
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      const Op& op = program.ops[i];
      const bool compute = std::holds_alternative<Compute>(op.what);
      if (!compute && !std::holds_alternative<Update>(op.what)) continue;
      const auto rank = program.rank_of(op).value;
      const bool slow = rank == 3 || (rank == 2 && tp == 2 && compute);
      slowed += slow;
      const Seconds time = compute_time(program, OpId(i), scenario.cluster, profile);
      CHECK(time == compute_time(program, OpId(i), sound, slow ? half : profile));
      if (compute && tp == 1 && slow)  // 0.1 ms of overhead; the rest takes twice as long
        CHECK((time - Seconds(1e-4)).count() ==
              doctest::Approx(
                  2 * (compute_time(program, OpId(i), sound, profile) - Seconds(1e-4)).count()));
    }
    CHECK(slowed > 2);
    const CostTable costs =
        price(program, std::get<Compiled>(compile(program)), scenario.cluster, profile);
    const CostTable without = price(program, std::get<Compiled>(compile(program)), sound, profile);
    Seconds more{};
    for (std::size_t n = 0; n < costs.nodes.size(); ++n)
      more += costs.nodes[n].duration - without.nodes[n].duration;
    CHECK(more > Seconds(0));
  }
}

TEST_CASE("a failed link that is needed is refused, naming the rank and the use") {
  Scenario scenario = examples::small_on_cpu(4, 4);
  scenario.cluster.nodes = 2;
  scenario.cluster.ranks_per_node = 2;
  const auto answer = [&](const Layout& layout) {
    const Program program =
        lower(scenario, layout, make_plan(scenario, layout), typical_batch(scenario));
    const auto no = check_links(program, scenario.cluster);
    return no ? no->reason : "";
  };
  CHECK(answer(data_parallel(4)).empty());
  scenario.cluster.degraded = {{.rank = 1, .nic = 0, .nic_of = {}}};
  CHECK(answer(data_parallel(4)) ==
        "the NIC of rank 1 has failed, and its data-parallel group with rank 2 (4 ranks) needs it; "
        "name the rank whose NIC it uses (\"nic_of\"), or remove its node");
  scenario.cluster.degraded.front().nic_of = 0;
  CHECK(answer(data_parallel(4)).empty());
  scenario.cluster.degraded = {{.rank = 2, .link = 0, .nic_of = {}}};
  CHECK(answer(data_parallel(4, 2)) ==
        "the node link of rank 2 has failed, and its tensor-parallel group with rank 3 (2 ranks) "
        "needs it; remove its node");
}

TEST_CASE("a failed NIC that a pipeline's messages need is refused") {
  // 2 stages × 2 data-parallel replicas: ranks 0, 1 | 2, 3 on nodes of 2. Messages cross nodes; no
  // group does, except the one of all ranks.
  const Program program = hand_made::pipeline({.stages = 2, .microbatches = 1, .lanes = 2});
  Cluster cluster;
  cluster.nodes = cluster.ranks_per_node = 2;
  cluster.degraded = {{.rank = 1, .nic = 0, .nic_of = {}}};
  const auto no = check_links(program, cluster);
  REQUIRE(no.has_value());
  CHECK(no->reason ==
        "the NIC of rank 1 has failed, and a message from rank 1 to rank 3 needs it; name the "
        "rank whose NIC it uses (\"nic_of\"), or remove its node");
  cluster.degraded.front().nic_of = 0;
  CHECK_FALSE(check_links(program, cluster).has_value());
}

TEST_CASE("topology is read strictly, and can be written and read again") {
  const Scenario scenario = read_scenario(
      reading(R"({"node": {"device": "A40", "ranks": 4, "link": "56.25GBps"}, "nodes": 4,
        "domain": 2, "bus": "31.5GBps", "bus_latency": "2us", "nics": 1, "nic": "200Gbps",
        "connection": "1.2GBps",
        "leaf": {"nodes": 2, "oversubscription": 3, "rails": 1},
        "degraded": [{"rank": 7, "nic": 0.5}, {"rank": 3, "device": 0.8, "link": 0.9}],
        "busy_power": "250W"})"),
      "s.json", test::file_text);
  const Cluster& cluster = scenario.cluster;
  CHECK(cluster.domain_of(Rank(5)) == 2);
  CHECK(cluster.nic_of(Rank(5)) == 1);
  CHECK(cluster.leaf_of(Rank(9)) == 1);
  CHECK(cluster.connection == BytesPerSecond(1.2e9));
  CHECK(cluster.degraded.front() == Degraded{.rank = 3, .device = 0.8, .link = 0.9, .nic_of = {}});
  CHECK(cluster.busy_power == Watts(250));
  CHECK(cluster.idle_power == Watts(90));  // 0.3 of the data sheet's 300 W
  CHECK(read_scenario(resolved_text(scenario), "s.json", test::file_text).cluster == cluster);

  const auto refused = [](const std::string& changes) {
    return test::refusal(
        reading(R"({"node": {"device": "A40", "ranks": 4}, "nodes": 2, )" + changes + "}"));
  };
  CHECK(refused(R"("domain": 3)") ==
        "s.json: /cluster/domain: domain must be a divisor or a multiple of the 4 ranks of a node, "
        "got 3 (remove the key for one domain per node)");
  CHECK(
      refused(R"("domain": 2)")
          .starts_with("s.json: /cluster/bus: key \"bus\" is missing: a node has several domains"));
  CHECK(refused(R"("nics": 3)")
            .starts_with("s.json: /cluster/nics: nics must be a divisor of the 4 ranks of a node, "
                         "got 3"));
  CHECK(refused(R"("leaf": {"nodes": 1, "oversubscription": 0.5})")
            .starts_with("s.json: /cluster/leaf/oversubscription: 0.5 is out of range"));
  CHECK(refused(R"("leaf": {"nodes": 1, "rails": 3})")
            .starts_with(
                "s.json: /cluster/leaf/rails: rails must be a divisor of the 4 NICs of a node, "
                "got 3"));
  CHECK(refused(R"("degraded": [{"rank": 8}])")
            .starts_with("s.json: /cluster/degraded: rank must be from 0 to 7, got 8"));
  CHECK(refused(R"("degraded": [{"rank": 1}, {"rank": 1}])").find("rank 1 has two entries") !=
        std::string::npos);
  CHECK(refused(R"("degraded": [{"rank": 1, "nic_of": 4}])")
            .find("must be a rank in the node of rank 1, got 4") != std::string::npos);
  CHECK(refused(R"("degraded": [{"rank": 1, "device": 0}])")
            .starts_with("s.json: /cluster/degraded/0/device: 0 is out of range"));
}

TEST_CASE("GB200 in trays of 4: one domain of 72") {
  CHECK(default_domain("GB200", 4) == 72);
  CHECK(default_domain("GB200", 72) == 0);
  CHECK(default_domain("GB200", 64) == 0);  // not a multiple of such nodes
  CHECK(default_domain("H100", 8) == 0);
  const Scenario trays =
      read_scenario(reading(R"({"node": "gb200-tray", "nodes": 36})"), "s.json", test::file_text);
  CHECK(trays.cluster.domain_of(Rank(71)) == 0);
  CHECK(trays.cluster.domain_of(Rank(72)) == 1);
  CHECK(read_scenario(resolved_text(trays), "s.json", test::file_text).cluster == trays.cluster);
}

TEST_CASE("accelerators that are joined pair by pair have the rate of a pair's link") {
  const auto cluster_of = [](const char* node) {
    const Scenario scenario =
        read_scenario(reading(std::string(R"({"node": )") + node + "}"), "s.json", test::file_text);
    CHECK(read_scenario(resolved_text(scenario), "s.json", test::file_text).cluster ==
          scenario.cluster);
    return scenario.cluster;
  };
  CHECK(cluster_of(R"({"device": "H100", "ranks": 4})").peer_link.value == 0);
  CHECK(cluster_of(R"("mi300x-platform")").peer_link.value == 64e9);
  CHECK(cluster_of(R"({"device": "MI300X", "ranks": 4, "link": "48GBps"})").peer_link.value ==
        48e9);
  const Cluster mesh =
      cluster_of(R"({"device": "H100", "ranks": 4, "link": "300GBps", "peer_link": "100GBps"})");
  CHECK(mesh.node_link.rate.value == 300e9);
  CHECK(mesh.peer_link.value == 100e9);
  CHECK(
      test::refusal(reading(
          R"({"node": {"device": "H100", "ranks": 4, "link": "9GBps", "peer_link": "10GBps"}})")) ==
      "s.json: /cluster/node/peer_link: peer_link must be at most link, of which it is a part "
      "(write the rate to a single other accelerator, such as \"64GBps\")");
}

TEST_CASE("a device with custom figures needs a profile") {
  CHECK(test::refusal(
            reading(
                R"({"node": {"device": {"name": "X1", "fp32": "60TFLOPS", "memory_rate": "3TBps",
                "memory": "64GiB"}, "ranks": 2, "link": "300GBps"}})"))
            .starts_with("s.json: /cluster: key \"profile\" is missing (a device with figures of "
                         "its own needs one"));
}

}  // namespace polyphony
