#include <doctest/doctest.h>

#include "tests/shared/support/hand_made.h"
#include "traces/compare/activity.h"
#include "traces/compare/compare.h"

using namespace polyphony;
using namespace polyphony::traces;

namespace {

Timeline estimated(const Program& program, const hand_made::Lengths& lengths) {
  const Compiled compiled = hand_made::compile_sound(program);
  return estimate(program, compiled, hand_made::fixed_costs(program, compiled, lengths)).timeline;
}

double seconds(const PartTimes& times, Part part) {
  return times[static_cast<std::size_t>(part)].count();
}

OpId find_op(const Program& program, Rank rank, StreamKind kind, std::size_t nth = 0) {
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const Stream& stream = program.streams[program.ops[op].stream.value];
    if (stream.rank == rank && stream.kind == kind && nth-- == 0) return OpId(op);
  }
  FAIL("no such op");
  return {};
}

}  // namespace

// 2 stages, 2 microbatches, 1F1B, F = 1, B = 2, messages take no time, one replica:
//   rank 0: F0 0-1, F1 1-2, wait for B0 of rank 1, B0 4-6, wait for B1 of rank 1 (7), B1 7-9 busy 6
//   rank 1: F0 1-2, B0 2-4, F1 4-5, B1 5-7 busy 6
// The step scalars (a collective of the world) take no time, so the step is 9 and both ranks are
// idle for 3.
TEST_CASE("the parts of a 1F1B step are those computed by hand") {
  const Program program = hand_made::pipeline({.stages = 2, .microbatches = 2});
  const auto parts =
      part_times(program, estimated(program, {Seconds(1), Seconds(2), Seconds(0), Seconds(0)}));
  REQUIRE(parts.size() == 2);
  for (const PartTimes& rank : parts) {
    CHECK(seconds(rank, Part::forward) == doctest::Approx(2));
    CHECK(seconds(rank, Part::backward) == doctest::Approx(4));
    CHECK(seconds(rank, Part::recompute) == 0);
    CHECK(seconds(rank, Part::optimizer) == 0);
    CHECK(seconds(rank, Part::idle) == doctest::Approx(3));
    CHECK(seconds(rank, Part::exchange) == 0);
    CHECK(seconds(rank, Part::all_reduce) == 0);
  }
}

// The same with messages of 0.5: F0 0-1, arrives 1.5; rank 1: F0 1.5-2.5, B0 2.5-4.5, F1 4.5-5.5,
// B1 5.5-7.5. Rank 0: F1 1-2; gradient of B0 arrives 5: B0 5-7; gradient of B1 arrives 8: B1 8-10.
// Four messages of 0.5: 1-1.5, 4.5-5, 7.5-8, and that of F1, which is sent at 2 and received once
// the receive stream is free: 2-2.5. Each rank takes part in all four: 2 s.
TEST_CASE("messages count from when both ends have started") {
  const Program program = hand_made::pipeline({.stages = 2, .microbatches = 2});
  const Timeline timeline = estimated(program, {Seconds(1), Seconds(2), Seconds(0.5), Seconds(0)});
  CHECK(timeline.makespan.count() == doctest::Approx(10));
  const auto parts = part_times(program, timeline);
  for (const PartTimes& rank : parts) {
    CHECK(seconds(rank, Part::exchange) == doctest::Approx(2));
    CHECK(seconds(rank, Part::idle) == doctest::Approx(4));
  }
  // Receives are posted early: recorded as long, active for 0.5.
  const OpId receive = find_op(program, Rank(1), StreamKind::receive);
  const auto times = recorded(program, timeline);
  CHECK((times[receive.value]->end - times[receive.value]->start).count() == doctest::Approx(1.5));
  const Activity activity = find_activity(program, timeline);
  REQUIRE(activity.of[receive.value].size() == 1);
  const traces::Interval work = activity.intervals[activity.of[receive.value].begin];
  CHECK((work.end - work.start).count() == doctest::Approx(0.5));
}

TEST_CASE(
    "a send that ended before its receive started worked for no time, the receive for all of its "
    "own") {
  const Program program = hand_made::pipeline({.stages = 2, .microbatches = 1});
  const OpId send = find_op(program, Rank(0), StreamKind::send);
  const OpId receive = find_op(program, Rank(1), StreamKind::receive);
  const Timeline timeline{{{send, Seconds(0), Seconds(1)}, {receive, Seconds(3), Seconds(4)}},
                          Seconds(4)};
  const Activity activity = find_activity(program, timeline);
  CHECK(activity.of[send.value].size() == 0);
  REQUIRE(activity.of[receive.value].size() == 1);
  CHECK(activity.intervals[activity.of[receive.value].begin] ==
        traces::Interval{Seconds(3), Seconds(4)});
}

// The receive ends at 2, the forward that depends on it is recorded from 2.5 to 4: waking up took
// 0.5 of its 2.
TEST_CASE("time between the end of a wait and the recorded start of the op belongs to the op") {
  const Program program = hand_made::pipeline({.stages = 2, .microbatches = 1});
  const OpId receive = find_op(program, Rank(1), StreamKind::receive);
  const OpId forward = find_op(program, Rank(1), StreamKind::compute);
  const Timeline timeline{{{forward, Seconds(2.5), Seconds(4)}, {receive, Seconds(1), Seconds(2)}},
                          Seconds(4)};
  const Activity activity = find_activity(program, timeline);
  REQUIRE(activity.of[forward.value].size() == 1);
  CHECK(activity.intervals[activity.of[forward.value].begin] ==
        traces::Interval{Seconds(2), Seconds(4)});
}

// The send is buffered and ends at 1.2; the receive, posted at 0, ends at 2 and delays its
// dependents until then.
TEST_CASE("a message lasts until its receive ends") {
  const Program program = hand_made::pipeline({.stages = 2, .microbatches = 1});
  const OpId send = find_op(program, Rank(0), StreamKind::send);
  const OpId receive = find_op(program, Rank(1), StreamKind::receive);
  const Timeline timeline{{{send, Seconds(1), Seconds(1.2)}, {receive, Seconds(0), Seconds(2)}},
                          Seconds(2)};
  const Activity activity = find_activity(program, timeline);
  REQUIRE(activity.of[receive.value].size() == 1);
  CHECK(activity.intervals[activity.of[receive.value].begin] ==
        traces::Interval{Seconds(1), Seconds(2)});
  REQUIRE(activity.of[send.value].size() == 1);
  CHECK(activity.intervals[activity.of[send.value].begin] ==
        traces::Interval{Seconds(1), Seconds(1.2)});
}

TEST_CASE("a compute op with inner collectives waits for its group, and waiting is idle") {
  const Program program = hand_made::pipeline({.stages = 1, .microbatches = 1, .tensor = 2});
  const OpId first = find_op(program, Rank(0), StreamKind::compute);
  const OpId second = find_op(program, Rank(1), StreamKind::compute);
  REQUIRE(program.ops[first.value].group.valid());
  // Rank 1 starts 2 s late; both end at 5.
  const Timeline timeline{{{first, Seconds(0), Seconds(5)}, {second, Seconds(2), Seconds(5)}},
                          Seconds(5)};
  const auto parts = part_times(program, timeline);
  CHECK(seconds(parts[0], Part::forward) == doctest::Approx(3));
  CHECK(seconds(parts[0], Part::idle) == doctest::Approx(2));
  CHECK(seconds(parts[1], Part::forward) == doctest::Approx(3));
}

TEST_CASE("the parts of the compute stream and its idle time add up to the step") {
  const Program program = hand_made::pipeline({.stages = 4, .microbatches = 6, .lanes = 2});
  const Timeline timeline =
      estimated(program, {Seconds(1), Seconds(2), Seconds(0.3), Seconds(0.7)});
  for (const PartTimes& rank : part_times(program, timeline)) {
    const double sum = seconds(rank, Part::forward) + seconds(rank, Part::backward) +
                       seconds(rank, Part::recompute) + seconds(rank, Part::optimizer) +
                       seconds(rank, Part::idle);
    CHECK(sum == doctest::Approx(timeline.makespan.count()));
    CHECK(seconds(rank, Part::all_reduce) > 0);
  }
}

TEST_CASE(
    "repeated measurements that differ by more than the tolerance can refute a prediction but not "
    "confirm it") {
  Comparison wild;
  wild.step_error = -0.81;
  wild.of_equal_batches.count = 4;
  wild.of_equal_batches.median = Seconds(100);
  wild.of_equal_batches.p25 = Seconds(70);
  wild.of_equal_batches.p75 = Seconds(184);  // ±57 %
  CHECK(wild.verdict(0.1) == Verdict::unknown);
  wild.step_error = 0;  // coincidence
  CHECK(wild.verdict(0.1) == Verdict::unknown);
  wild.step_error = 1.15;  // twice 57 % and more
  CHECK(wild.verdict(0.1) == Verdict::outside);
  Comparison steady;  // identical repeats
  steady.step_error = 0.09;
  CHECK(steady.verdict(0.1) == Verdict::within);
  CHECK(steady.verdict(0.08) == Verdict::outside);
}

TEST_CASE("step and part errors refer to the median of several steps") {
  const Program program = hand_made::pipeline({.stages = 2, .microbatches = 2});
  const Timeline predicted =
      estimated(program, {Seconds(1), Seconds(2), Seconds(0), Seconds(0)});  // 9 s
  std::vector<Timeline> measured;
  for (double scale : {1.0, 1.1, 1.2, 1.35, 4.0}) {
    measured.push_back(
        estimated(program, {Seconds(scale), Seconds(2 * scale), Seconds(0), Seconds(0)}));
  }
  std::vector<ComparedStep> steps;
  for (const Timeline& step : measured) steps.push_back({program, predicted, step});
  const Comparison result = compare(steps);
  CHECK(result.measured_step.median.count() == doctest::Approx(10.8));
  CHECK(result.step_error == doctest::Approx((9 - 10.8) / 10.8));
  // Quartiles of 9, 9.9, 10.8, 12.15, 36 are 9.9 and 12.15: half of 2.25 over 10.8.
  CHECK(result.repeatability() == doctest::Approx(1.125 / 10.8));
  // An error of 16.7 %, with a repeatability of 10.4 %.
  CHECK(result.verdict(0.11) == Verdict::within);
  CHECK(result.verdict(0.1) == Verdict::unknown);
  const PartComparison& forward = result.average[static_cast<std::size_t>(Part::forward)];
  CHECK(forward.predicted.count() == doctest::Approx(2));
  CHECK(forward.measured.count() == doctest::Approx(2.4));
  CHECK(*forward.error == doctest::Approx(-0.4 / 2.4));
  CHECK(forward.share_error == doctest::Approx(-0.4 / 10.8));
  CHECK_FALSE(result.average[static_cast<std::size_t>(Part::exchange)].error.has_value());
  CHECK(result.critical == Rank(std::size_t{0}));  // both are idle for 3: the lower number
}

// F = 1, B = 2, two stages: 2 microbatches take (2 + 1) · 3 = 9 s, 4 take 15 s; each measured step
// is a tenth slower.
TEST_CASE("each step is compared with the prediction of its own batch") {
  const Program few = hand_made::pipeline({.stages = 2, .microbatches = 2});
  const Program many = hand_made::pipeline({.stages = 2, .microbatches = 4});
  const auto timed = [](const Program& program, double scale) {
    return estimated(program, {Seconds(scale), Seconds(2 * scale), Seconds(0), Seconds(0)});
  };
  const Timeline predicted_few = timed(few, 1), predicted_many = timed(many, 1);
  const Timeline measured_few = timed(few, 1.1), measured_many = timed(many, 1.1);
  const Comparison result = compare({{few, predicted_few, measured_few},
                                     {many, predicted_many, measured_many},
                                     {many, predicted_many, measured_many}});
  CHECK(result.predicted_step.count() == doctest::Approx(15));
  CHECK(result.measured_step.median.count() == doctest::Approx(16.5));
  CHECK(result.step_error == doctest::Approx(-1.5 / 16.5));
  CHECK(result.repeatability() ==
        doctest::Approx(0));  // three times 16.5 s if all steps had that batch
  // Of 9.9, 16.5, 16.5 the quartiles are 13.2 and 16.5.
  CHECK(result.measured_step.repeatability() == doctest::Approx(1.65 / 16.5));
  const PartComparison& forward = result.average[static_cast<std::size_t>(Part::forward)];
  CHECK(forward.predicted.count() == doctest::Approx(4));
  CHECK(forward.measured.count() == doctest::Approx(4.4));
}

TEST_CASE("quantiles interpolate linearly") {
  const traces::Spread five = spread({Seconds(5), Seconds(1), Seconds(3), Seconds(2), Seconds(4)});
  CHECK(five.median.count() == 3);
  CHECK(five.p25.count() == 2);
  CHECK(five.p75.count() == 4);
  CHECK(five.p10.count() == doctest::Approx(1.4));
  CHECK(five.p90.count() == doctest::Approx(4.6));
  // Of 1, 2, 3, 4, 25: p10 1.4, p90 16.6.
  CHECK(spread({Seconds(25), Seconds(1), Seconds(3), Seconds(2), Seconds(4)}).mean.count() ==
        doctest::Approx((1.4 + 2 + 3 + 4 + 16.6) / 5));
  CHECK(five.repeatability() == doctest::Approx(1.0 / 3));
  CHECK(spread({Seconds(2)}).repeatability() == 0);
  CHECK(spread({}) == traces::Spread{});
}
