// Causes of idle time, compared with values computed by hand.
#include "traces/compare/idle.h"

#include <doctest/doctest.h>

#include "tests/shared/support/hand_made.h"
#include "traces/compare/compare.h"

using namespace polyphony;
using namespace polyphony::traces;

namespace {

double seconds(const IdleTimes& times, Idle idle) {
  return times[static_cast<std::size_t>(idle)].count();
}

}  // namespace

// F = 1, B = 2, messages of 0.5 (compare_test.cpp draws the step, which takes 10):
//   rank 0: idle 2-5, ended by B0's gradient (4.5-5), and 7-8, ended by B1's (7.5-8). F1's message
//           is sent at 2-2.5 on another stream: no op of this rank waits for it.
//   rank 1: idle 0-1.5, ended by F0's message (1-1.5), and 7.5-10, behind which only B1's gradient
//           is sent (7.5-8).
// Both compute for 6, so none of the waiting is imbalance.
TEST_CASE("idle time of a 1F1B step is the message that ended a gap, otherwise bubble") {
  const Program program = hand_made::pipeline({.stages = 2, .microbatches = 2});
  const Compiled compiled = hand_made::compile_sound(program);
  const Timeline timeline =
      estimate(program, compiled,
               hand_made::fixed_costs(program, compiled,
                                      {Seconds(1), Seconds(2), Seconds(0.5), Seconds(0)}))
          .timeline;
  const auto idle = idle_times(program, timeline);
  REQUIRE(idle.size() == 2);
  for (const IdleTimes& rank : idle) {
    CHECK(seconds(rank, Idle::messages) == doctest::Approx(1));
    CHECK(seconds(rank, Idle::bubble) == doctest::Approx(3));
    for (const Idle none : {Idle::bridge, Idle::shards, Idle::gradients, Idle::imbalance})
      CHECK(seconds(rank, none) == doctest::Approx(0));
  }
}

// Two replicas, F = 1 (2 on rank 1), B = 2, collectives of 0.5: gradients are reduced from 4, when
// rank 1 is ready, to 4.5, the scalars (optimizer) take until 5. Rank 0 is idle 3-4.5, rank 1
// 4-4.5.
TEST_CASE("a gradient reduction, and waiting for the rank with more to compute") {
  const Program program = hand_made::pipeline({.stages = 1, .microbatches = 1, .lanes = 2});
  const Compiled compiled = hand_made::compile_sound(program);
  CostTable costs =
      hand_made::fixed_costs(program, compiled, {Seconds(1), Seconds(2), Seconds(0), Seconds(0.5)});
  const OpId slow = hand_made::find(program, Rank(1), "F");
  for (std::size_t n = 0; n < compiled.nodes.size(); ++n)
    if (compiled.nodes[n].kind == NodeKind::compute && compiled.nodes[n].what == slow.value)
      costs.nodes[n].duration = Seconds(2);
  const Timeline timeline = estimate(program, compiled, costs).timeline;
  CHECK(timeline.makespan.count() == doctest::Approx(5));
  const auto idle = idle_times(program, timeline);
  REQUIRE(idle.size() == 2);
  for (const IdleTimes& rank : idle) {
    CHECK(seconds(rank, Idle::gradients) == doctest::Approx(0.5));
    CHECK(seconds(rank, Idle::bubble) == doctest::Approx(0));
  }
  CHECK(seconds(idle[0], Idle::imbalance) == doctest::Approx(1));
  CHECK(seconds(idle[1], Idle::imbalance) == doctest::Approx(0));
}
