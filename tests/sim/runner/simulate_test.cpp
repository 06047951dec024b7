// simulate() on hand-made Programs whose times follow from max-min sharing on paper. Rates are
// bytes a second, so that times are small whole numbers: a row is 4 bytes (width 1, fp32), 250 rows
// are 1,000 bytes, a fabric link carries 1,000 B/s and a node link 2,000.
#include "sim/runner/simulate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <variant>
#include <vector>

#include "tests/sim/runner/scene.h"

namespace polyphony::tests {
namespace {

void check_time(const OpTime& time, double start, double end) {
  CHECK(time.start.count() == doctest::Approx(start).epsilon(1e-11));
  CHECK(time.end.count() == doctest::Approx(end).epsilon(1e-11));
}

}  // namespace

TEST_CASE("compute ops of one stream are serial, those of different ranks are independent") {
  Scene scene({0, 1});
  const Draft a = scene.compute(0, Seconds(2));
  const Draft b = scene.compute(0, Seconds(3));
  const Draft c = scene.compute(1, Seconds(4));
  const auto times = scene.run();
  check_time(times[a], 0, 2);
  check_time(times[b], 2, 5);
  check_time(times[c], 0, 4);
}

TEST_CASE("two flows from one rank share its link until the shorter one ends") {
  // Both at 500 B/s; 1,000 bytes are through at 2 s; the other has 2,000 of 3,000 left, alone at
  // 1,000 B/s: 4 s.
  Scene scene({0, 1, 2});
  const MessageId near = scene.message(0, 1, Bytes(1000)), far = scene.message(0, 2, Bytes(3000));
  const Draft out = scene.send(0, {near, far});
  const Draft first = scene.receive(1, {near}), second = scene.receive(2, {far});
  const auto times = scene.run();
  check_time(times[out], 0, 4);  // an exchange ends with the last of its messages
  check_time(times[first], 0, 2);
  check_time(times[second], 0, 4);
}

TEST_CASE("sharing is max-min fair: bandwidth that one flow cannot use goes to others") {
  // Rank 2's down link carries 0>2 and 1>2, rank 1's up link 1>2 and 1>3, rank 3's down link 1>3
  // and 4>3: all get 500 B/s. 1>3 (248 bytes) ends at 0.496 s. 1>2 is still held to 500 by rank 2,
  // so both of its flows end at 2 s; 4>3 goes on alone with 1,500 - 248 = 1,252 bytes.
  Scene scene({0, 1, 2, 3, 4});
  const MessageId m02 = scene.message(0, 2, Bytes(1000)), m12 = scene.message(1, 2, Bytes(1000));
  const MessageId m13 = scene.message(1, 3, Bytes(248)), m43 = scene.message(4, 3, Bytes(1500));
  scene.send(0, {m02});
  scene.send(1, {m12, m13});
  scene.send(4, {m43});
  const Draft at2 = scene.receive(2, {m02, m12});
  const Draft from1 = scene.receive(3, {m13}), from4 = scene.receive(3, {m43});
  const auto times = scene.run();
  check_time(times[at2], 0, 2);
  check_time(times[from1], 0, 0.496);
  check_time(times[from4], 0, 0.496 + 1.252);
}

TEST_CASE("copies to and from host memory share the memory bandwidth of a node") {
  // Links of 40 B/s to a memory of 50: 100 bytes alone take 2.5 s, two at once 25 B/s each, 4 s,
  // whether both go or one comes back. Ranks of two nodes have a memory each.
  Cluster cluster;
  cluster.nodes = cluster.ranks_per_node = 2;
  cluster.node_link.rate = kNodeRate;
  cluster.fabric_link.rate = kFabricRate;
  cluster.host_link.rate = BytesPerSecond(40);
  cluster.host_memory = BytesPerSecond(50);
  const Network network = make_network(cluster, 4, HostCopies::all);
  const auto copy = [&](Rank rank, bool out) {
    const Rank host = network.host(rank);
    return out ? Flow{rank, host, Bytes(100)} : Flow{host, rank, Bytes(100)};
  };
  const auto seconds = [&](const Flow& one, const Flow& other) {
    Scene scene({0, 0, 1, 1});
    scene.compute(0, Seconds(0));
    scene.compute(2, Seconds(0));
    CostTable& costs = scene.costs();
    costs.network = network;
    costs.flows = {one, other};
    for (std::uint32_t node = 0; node < 2; ++node) costs.nodes[node].flows = {node, node + 1};
    const sim::Playback playback = scene.play();
    CHECK(playback.sent[0] == sim::Sent{});
    return playback.timeline.makespan.count();
  };
  CHECK(seconds(copy(Rank(0), true), copy(Rank(1), true)) == doctest::Approx(4));
  CHECK(seconds(copy(Rank(0), true), copy(Rank(1), false)) == doctest::Approx(4));
  CHECK(seconds(copy(Rank(0), false), copy(Rank(1), false)) == doctest::Approx(4));
  CHECK(seconds(copy(Rank(0), true), copy(Rank(2), true)) == doctest::Approx(2.5));
}

TEST_CASE("a flow that starts later slows down a running one") {
  // 0>1 alone for 1 s: 1,000 of 3,000 bytes. Then 0>2 (500 bytes) joins: 500 B/s each until 2 s.
  // Then 1,500 left alone: 3.5 s.
  Scene scene({0, 1, 2});
  const MessageId early = scene.message(0, 1, Bytes(3000)), late = scene.message(0, 2, Bytes(500));
  const Draft wait = scene.compute(0, Seconds(1));
  scene.send(0, {early});
  scene.send(0, {late}, {wait});
  const Draft first = scene.receive(1, {early}), second = scene.receive(2, {late});
  const auto times = scene.run();
  check_time(times[first], 0, 3.5);
  check_time(times[second], 0, 2);  // posted at 0, carried from 1 s to 2 s
}

TEST_CASE("node and fabric links are independent, and so are the two directions") {
  // Inside the node 2,000 bytes at 2,000 B/s: 1 s. Over the fabric 2,000 bytes each way at 1,000
  // B/s: 2 s.
  Scene scene({0, 0, 1});
  const MessageId inside = scene.message(0, 1, Bytes(2000));
  const MessageId out = scene.message(0, 2, Bytes(2000)), back = scene.message(2, 0, Bytes(2000));
  scene.send(0, {inside, out});
  scene.send(2, {back});
  const Draft near = scene.receive(1, {inside});
  const Draft far = scene.receive(2, {out}), home = scene.receive(0, {back});
  const sim::Playback playback = scene.play();
  const auto times = scene.run();
  check_time(times[near], 0, 1);
  check_time(times[far], 0, 2);
  check_time(times[home], 0, 2);
  CHECK(playback.flows == 3);
  CHECK(playback.sent == std::vector<sim::Sent>{{Bytes(2000), Bytes(2000)}, {}, {{}, Bytes(2000)}});
}

TEST_CASE("a delay precedes the flow and does not occupy the link") {
  // Both messages of 1,000 bytes wait 3 s together, then share: 5 s.
  Scene scene({0, 1, 2});
  scene.set_delay(Seconds(3));
  const MessageId a = scene.message(0, 1, Bytes(1000)), b = scene.message(0, 2, Bytes(1000));
  scene.send(0, {a, b});
  const Draft first = scene.receive(1, {a}), second = scene.receive(2, {b});
  const auto times = scene.run();
  check_time(times[first], 0, 5);
  check_time(times[second], 0, 5);
}

TEST_CASE("a message from a rank to itself takes its delay and uses no link") {
  Scene scene({0});
  scene.set_delay(Seconds(3));
  const MessageId own = scene.message(0, 0, Bytes(1'000'000));
  const Draft out = scene.send(0, {own}), in = scene.receive(0, {own});
  const sim::Playback playback = scene.play();
  const auto times = scene.run();
  check_time(times[out], 0, 3);
  check_time(times[in], 0, 3);
  CHECK(playback.flows == 0);
}

TEST_CASE("a rendezvous starts when the later of its two ranks arrives") {
  // The receiver is busy until 2 s, then 1,000 bytes take 1 s.
  Scene scene({0, 1});
  const MessageId message = scene.message(0, 1, Bytes(1000));
  const Draft busy = scene.compute(1, Seconds(2));
  const Draft out = scene.send(0, {message});
  const Draft in = scene.receive(1, {message}, {busy});
  const auto times = scene.run();
  check_time(times[out], 0, 3);
  check_time(times[in], 2, 3);
}

TEST_CASE("64 ranks that send to one rank share its link evenly") {
  // 64 × 1,000 bytes through 1,000 B/s, all at the same pace: 64 s, whatever the order.
  std::vector<std::uint32_t> nodes(65);
  for (std::uint32_t r = 0; r < nodes.size(); ++r) nodes[r] = r;
  Scene scene(nodes);
  std::vector<MessageId> all;
  for (std::uint32_t r = 1; r < nodes.size(); ++r) all.push_back(scene.message(r, 0, Bytes(1000)));
  for (std::uint32_t r = 1; r < nodes.size(); ++r) scene.send(r, {all[r - 1]});
  scene.receive(0, all);
  for (const OpTime& time : scene.run()) check_time(time, 0, 64);
}

TEST_CASE("the flows of a collective run concurrently after its delay") {
  // Ring all-reduce of 900 bytes over 3 ranks: 2·2/3·900 = 1,200 bytes per edge at 1,000 B/s after
  // 2·2·0.1 s: 1.6 s. Rank 2 comes at 1 s.
  ProgramBuilder builder(3);
  builder.program.model.modules.emplace_back();
  builder.program.works.emplace_back();
  builder.program.sizes.emplace_back();
  const GroupId group = builder.group(GroupKind::world, {Rank(0), Rank(1), Rank(2)});
  const Draft late =
      builder.compute(builder.stream(Rank(2), StreamKind::compute, "compute"),
                      {ModuleId(0), {0, 1}, Phase::forward, WorkId(0)}, GroupId(), {}, {});
  builder.collective(CollectiveKind::all_reduce, group, Bytes(900), {{}, {}, {late}}, {});
  const Program program = builder.finish();
  const Compiled compiled = std::get<Compiled>(compile(program));
  CostTable costs;
  costs.network = {{0, 1, 2}, kNodeRate, kFabricRate};
  for (const Node& node : compiled.nodes) {
    if (node.kind == NodeKind::compute) {
      costs.nodes.push_back({Seconds(1), Seconds(0), {}});
    } else {
      costs.nodes.push_back({Seconds(0), Seconds(0.4), {0, 3}});
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    costs.flows.push_back({Rank(i), Rank((i + 1) % 3), Bytes(1200)});
  }
  const auto result = sim::simulate(program, compiled, costs);
  const Timeline& timeline = std::get<Timeline>(result);
  CHECK(timeline.makespan.count() == doctest::Approx(2.6).epsilon(1e-11));
  for (const OpTime& time : timeline.ops) {
    if (std::holds_alternative<Collective>(program.ops[time.op.value].what)) {
      check_time(time, 1, 2.6);  // it starts when its last member has come
    }
  }
}

TEST_CASE("a very long chain of ops without duration does not overflow the stack") {
  Scene scene({0});
  for (int i = 0; i < 200'000; ++i) scene.compute(0, Seconds(0));
  CHECK(scene.play().timeline.makespan == Seconds(0));
}

TEST_CASE("an empty Program takes no time") {
  Scene scene({0, 1});
  CHECK(scene.play().timeline == Timeline());
}

TEST_CASE("a transfer without a link is infeasible, and the reason names the ranks") {
  Scene scene({0, 1});
  const MessageId message = scene.message(0, 1, Bytes(1000));
  scene.send(0, {message});
  scene.receive(1, {message});
  scene.costs().network.fabric_rate = BytesPerSecond(0);
  const auto result = scene.attempt();
  REQUIRE(std::holds_alternative<Infeasible>(result));
  CHECK(std::get<Infeasible>(result).reason ==
        "no link connects rank 0 and rank 1: the cluster's fabric link has no rate");
}

TEST_CASE("a cost that is not a valid time is an internal error") {
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    Scene scene({0});
    scene.compute(0, Seconds(1));
    scene.costs().nodes[0].duration = Seconds(bad);
    CHECK_THROWS_AS(scene.attempt(), InternalError);
  }
}

}  // namespace polyphony::tests
