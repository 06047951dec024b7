// Replays a measured step: unchanged it is reproduced exactly, and with a change the result is that
// computed by hand.
#include <doctest/doctest.h>

#include <cmath>

#include "shared/chance/jitter.h"
#include "shared/hardware/devices.h"
#include "tests/traces/sample_run.h"
#include "traces/replay/critical_path.h"
#include "traces/replay/measured_step.h"
#include "traces/replay/node_times.h"

namespace polyphony::traces {
namespace {

const HardwareProfile& roofline() { return *find_profile("cpu-core-roofline"); }

// A recorded step of a Program: the times of the model under jitter.
struct Run {
  Program program;
  Compiled compiled;
  Machine machine;
  Timeline timeline;

  explicit Run(const hand_made::PipelineShape& shape, std::uint64_t seed = 0)
      : program(test::varied_pipeline(shape)),
        compiled(hand_made::compile_sound(program)),
        machine{test::one_node(program, roofline()), roofline(), {}} {
    CostTable costs = price_on(machine, program, compiled);
    if (seed > 0) {
      Jitter jitter;
      jitter.of.fill({.step = 0.1, .op = 0.3});
      costs = draw_jitter(compiled, costs, jitter, seed);
    }
    timeline = estimate(program, compiled, costs).timeline;
  }
  MeasuredStep measured() const { return {program, compiled, timeline, machine}; }
  Seconds played(const ReplayedCosts& costs) const {
    return estimate(program, compiled, costs.costs).timeline.makespan;
  }
};

Seconds of(const Mixture& mixture, Origin origin) {
  return total(mixture)[static_cast<std::size_t>(origin)];
}

constexpr double kExact = 1e-9;  // rounding of a sum of a thousand times

}  // namespace

TEST_CASE("a step under jitter, replayed with its own times, is reproduced op by op") {
  for (const hand_made::PipelineShape shape :
       {hand_made::PipelineShape{.stages = 4, .microbatches = 6},
        hand_made::PipelineShape{.stages = 2, .microbatches = 3, .lanes = 2, .tensor = 2},
        hand_made::PipelineShape{
            .stages = 3, .microbatches = 5, .lanes = 1, .tensor = 1, .one_f_one_b = false}}) {
    const Run run(shape, 7);
    const ReplayedCosts again = run.measured().costs_of(run.program, run.compiled, run.machine);
    const Timeline played = estimate(run.program, run.compiled, again.costs).timeline;
    REQUIRE(played.ops.size() == run.timeline.ops.size());
    for (std::size_t op = 0; op < played.ops.size(); ++op)
      CHECK(played.ops[op].end.count() ==
            doctest::Approx(run.timeline.ops[op].end.count()).epsilon(kExact));
    CHECK(again.costs.flows.empty());
    CHECK(of(again.mixture, Origin::scaled) == Seconds(0));
    CHECK(of(again.mixture, Origin::modelled) == Seconds(0));
  }
}

TEST_CASE(
    "what waits is not in a time: a rank that began late is late again, its first op no longer") {
  Run run({.stages = 2, .microbatches = 1});
  const NodeTimes before = node_times(run.program, run.compiled, run.timeline);
  for (OpTime& op : run.timeline.ops) {  // all ops a second later
    op.start += Seconds(1);
    op.end += Seconds(1);
  }
  run.timeline.makespan += Seconds(1);
  const NodeTimes after = node_times(run.program, run.compiled, run.timeline);
  double late = 0;
  for (std::size_t node = 0; node < after.time.size(); ++node) {
    CHECK(after.time[node].count() == doctest::Approx(before.time[node].count()).epsilon(1e-6));
    late = std::max(late, after.late[node].count());
  }
  CHECK(late == doctest::Approx(1));
}

TEST_CASE(
    "another link or a slow rank: with the true model, the step of the changed machine is exact") {
  const Run run({.stages = 3, .microbatches = 4, .lanes = 2});  // no jitter: the model is exact
  Machine slow_link = run.machine;
  slow_link.cluster.node_link.rate = 1e-3 * slow_link.cluster.node_link.rate;
  Machine slow_rank = run.machine;
  slow_rank.cluster.degraded = {{.rank = 1, .device = 0.5, .nic_of = {}}};
  for (const Machine& changed : {slow_link, slow_rank}) {
    const ReplayedCosts costs = run.measured().costs_of(run.program, run.compiled, changed);
    const CostTable truth = price_on(changed, run.program, run.compiled);
    const Seconds step = estimate(run.program, run.compiled, truth).timeline.makespan;
    CHECK(step > 1.05 * run.timeline.makespan);
    CHECK(run.played(costs).count() == doctest::Approx(step.count()).epsilon(1e-6));
    CHECK(of(costs.mixture, Origin::scaled) > Seconds(0));
    CHECK(of(costs.mixture, Origin::measured) > Seconds(0));
    CHECK(of(costs.mixture, Origin::modelled) == Seconds(0));
  }
}

// Every message took a millisecond more than in the model. Over a link ten times slower, the bytes
// take nine times their modeled time longer, and the millisecond stays.
TEST_CASE("the time of a message beyond its model is added, not scaled with the link") {
  Run run({.stages = 2, .microbatches = 1});
  CostTable costs = price_on(run.machine, run.program, run.compiled);
  for (std::size_t node = 0; node < costs.nodes.size(); ++node)
    if (run.compiled.nodes[node].kind == NodeKind::message)
      costs.nodes[node].delay += Seconds(1e-3);
  run.timeline = estimate(run.program, run.compiled, costs).timeline;
  Machine changed = run.machine;
  changed.cluster.node_link.rate = 0.1 * changed.cluster.node_link.rate;
  const CostTable now = price_on(changed, run.program, run.compiled);
  const ReplayedCosts replayed = run.measured().costs_of(run.program, run.compiled, changed);
  int messages = 0;
  for (std::uint32_t node = 0; node < now.nodes.size(); ++node) {
    if (run.compiled.nodes[node].kind != NodeKind::message) continue;
    ++messages;
    CHECK(unshared_time(replayed.costs, node).count() ==
          doctest::Approx(unshared_time(now, node).count() + 1e-3));
  }
  CHECK(messages == 2);  // forward and backward
}

// Every op took three times its modeled time: an op of another size, and layers that were on other
// ranks, also take three times theirs.
TEST_CASE("in another layout, ops deviate from the model by the same factor as the measured ops") {
  Run run({.stages = 4, .microbatches = 2});
  CostTable costs = price_on(run.machine, run.program, run.compiled);
  for (NodeCost& node : costs.nodes) node.duration = 3 * node.duration;
  run.timeline = estimate(run.program, run.compiled, costs).timeline;
  const Run other({.stages = 4, .microbatches = 6});
  const ReplayedCosts replayed =
      run.measured().costs_of(other.program, other.compiled, run.machine);
  const CostTable model = price_on(run.machine, other.program, other.compiled);
  for (std::uint32_t node = 0; node < model.nodes.size(); ++node)
    if (other.compiled.nodes[node].kind == NodeKind::compute)
      CHECK(unshared_time(replayed.costs, node).count() ==
            doctest::Approx(3 * unshared_time(model, node).count()));
}

TEST_CASE(
    "a kind of collective that was not measured takes the time of the model, and its flows share "
    "links") {
  const Run run({.stages = 2, .microbatches = 2});  // one replica: no gradient all-reduce
  const Run lanes({.stages = 2, .microbatches = 2, .lanes = 2});
  Machine larger = lanes.machine;
  const ReplayedCosts replayed = run.measured().costs_of(lanes.program, lanes.compiled, larger);
  CHECK(of(replayed.mixture, Origin::modelled) > Seconds(0));
  CHECK_FALSE(replayed.costs.flows.empty());
}

TEST_CASE("a class that is twice as fast takes half its time, other classes are unchanged") {
  const Run run({.stages = 2, .microbatches = 3}, 3);
  const MeasuredStep step = run.measured();
  const Mixture before = step.costs_of(run.program, run.compiled, run.machine).mixture;
  const Mixture after =
      step.costs_of(run.program, run.compiled, run.machine, {{"language backward", 2}}).mixture;
  for (const auto& [label, by] : before)
    CHECK(after.at(label)[0].count() ==
          doctest::Approx(by[0].count() / (label == "language backward" ? 2 : 1)));
  CHECK(is_of("language backward", "language"));
  CHECK_FALSE(is_of("languages", "language"));
}

TEST_CASE("the critical path has no gaps and is as long as the step") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Run run({.stages = 4, .microbatches = 5, .lanes = 2}, seed);
    const std::vector<PathPiece> path = critical_path(run.program, run.timeline);
    REQUIRE(path.size() > 4);
    CHECK(path.front().start == Seconds(0));
    CHECK(path.back().end == run.timeline.makespan);
    for (std::size_t i = 1; i < path.size(); ++i) CHECK(path[i].start == path[i - 1].end);
  }
}

// Two stages, one microbatch, forward 1 s, backward 2 s: forward, forward, backward, backward.
TEST_CASE("the critical path of a pipeline is that found by hand") {
  const Program program = hand_made::pipeline({.stages = 2, .microbatches = 1});
  const Compiled compiled = hand_made::compile_sound(program);
  const Timeline timeline =
      estimate(program, compiled, hand_made::fixed_costs(program, compiled, {})).timeline;
  CHECK(timeline.makespan == Seconds(6));
  Seconds forward{}, backward{}, other{};
  for (const PathPiece& piece : critical_path(program, timeline)) {
    const auto* compute = std::get_if<Compute>(&program.ops[piece.op.value].what);
    (compute == nullptr                 ? other
     : compute->phase == Phase::forward ? forward
                                        : backward) += piece.end - piece.start;
  }
  CHECK(forward == Seconds(2));
  CHECK(backward == Seconds(4));
  CHECK(other == Seconds(0));
}

}  // namespace polyphony::traces
