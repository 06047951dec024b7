// Which steps are bad, what follows, and what a checkpoint and metrics.jsonl keep of it.
#include "exec/worker/bad_steps.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "shared/checkpoint/checkpoint_manifest_json.h"

namespace polyphony::exec {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

BadStepPolicy policy(BadStepAction spikes, int window) {
  BadStepPolicy chosen;
  chosen.spikes = spikes;
  chosen.window = window;
  return chosen;
}

StepScalars good(double loss, double norm) { return {loss, norm, true, false, {}}; }
StepScalars spike(double loss, double norm) { return {loss, norm, true, true, {}}; }
StepScalars not_finite() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {nan, nan, false, true, {}};
}

}  // namespace

TEST_SUITE("bad steps") {
  TEST_CASE("limits are factors on medians of the steps before the previous one") {
    BadStepPolicy three = policy(BadStepAction::skip, 3);
    three.loss_factor = 2;
    three.norm_factor = 10;
    BadStepState state;
    const double losses[] = {5, 1, 3, 9, 4}, norms[] = {0.5, 0.25, 1, 8, 0.125};
    for (std::int64_t step = 0; step < 5; ++step) {
      // Step n has seen the steps up to n − 2: fewer than three before step 4.
      const StepLimits most = limits_of(three, state, step);
      if (step < 4) {
        CHECK(most.loss == kInfinite);
        CHECK(most.gradient_norm == kInfinite);
      } else {  // 5, 1, 3: median 3; 0.5, 0.25, 1: median 0.5
        CHECK(most.loss == 6);
        CHECK(most.gradient_norm == 5);
      }
      judge(three, most, step, good(losses[step], norms[step]), state);
    }
    CHECK(limits_of(three, state, 5).loss == 6);            // 1, 3, 9: median 3
    CHECK(limits_of(three, state, 6).loss == 8);            // 3, 9, 4: median 4
    CHECK(limits_of(three, state, 6).gradient_norm == 10);  // 1, 8, 0.125: median 1
    CHECK(state.seen.size() == 4);                          // the window, and the previous step
    three.norm_factor = 0;
    CHECK(limits_of(three, state, 6).gradient_norm == kInfinite);
    CHECK(limits_of(policy(BadStepAction::ignore, 3), state, 6).loss == kInfinite);

    // The median of four values is the mean of the middle two: 1, 3, 4, 9 has 3.5.
    CHECK(limits_of(policy(BadStepAction::skip, 4), state, 6).loss == 7);
  }

  TEST_CASE("a device, which has not read the previous step's numbers, gets the same limits") {
    const BadStepPolicy two = policy(BadStepAction::skip, 2);
    BadStepState read, queued;  // what the host knows on a CPU and on a device
    for (std::int64_t step = 0; step < 6; ++step) {
      CHECK(limits_of(two, read, step).loss == limits_of(two, queued, step).loss);
      queued = read;
      // Step 2 has no finite values, so it does not count.
      const StepScalars scalars = step == 2 ? not_finite() : good(1 << step, 1);
      judge(two, {}, step, scalars, read);
    }
    CHECK(limits_of(two, read, 6).loss == 2 * (8 + 16) / 2);  // steps 3 and 4
  }

  TEST_CASE("a bad step is named, and what follows depends on its kind") {
    BadStepPolicy chosen = policy(BadStepAction::rewind, 2);
    BadStepState state;
    const StepLimits most{4, 8};
    CHECK(judge(chosen, most, 0, good(4, 8), state).kind.empty());
    Verdict verdict = judge(chosen, most, 1, spike(5, 9), state);
    CHECK(verdict.action == BadStepAction::rewind);
    CHECK(verdict.kind == "loss");
    CHECK(verdict.why == "its loss, 5, is more than 2 times the median, 2");
    verdict = judge(chosen, most, 2, spike(3, 9), state);
    CHECK(verdict.kind == "gradient norm");
    CHECK(verdict.why == "its gradient norm, 9, is more than 4 times the median, 2");
    verdict = judge(chosen, most, 3, not_finite(), state);
    CHECK(verdict.action == BadStepAction::skip);
    CHECK(verdict.kind == "non-finite values");
    CHECK(state.skipped == 3);
    CHECK(state.seen.size() == 3);  // spikes count, steps with non-finite values do not
    judge(chosen, most, 4, good(1, 1), state);
    CHECK(state.skipped == 0);
  }

  TEST_CASE("a run stops after the most skips in a row, and after the most rewinds") {
    BadStepPolicy chosen;
    chosen.most_skips = 3;
    BadStepState state;
    const auto next = [&](const StepScalars& scalars) {
      return judge(chosen, {}, 0, scalars, state).action;
    };
    CHECK(next(not_finite()) == BadStepAction::skip);
    CHECK(next(not_finite()) == BadStepAction::skip);
    CHECK(next(good(1, 1)) == BadStepAction::ignore);
    CHECK(next(not_finite()) == BadStepAction::skip);
    CHECK(next(not_finite()) == BadStepAction::skip);
    CHECK(next(not_finite()) == BadStepAction::stop);
    chosen.most_skips = 0;
    CHECK(next(not_finite()) == BadStepAction::skip);
    chosen.non_finite = BadStepAction::rewind;
    chosen.most_rewinds = 2;
    state.rewinds = 1;
    CHECK(next(not_finite()) == BadStepAction::rewind);
    state.rewinds = 2;
    CHECK(next(not_finite()) == BadStepAction::stop);
  }

  TEST_CASE("a rewind goes to a checkpoint of every n-th step, and passes over the samples since") {
    CHECK(rewind_target({0, 100, 130, 200}, 150, 100) == 100);
    CHECK(rewind_target({0, 100, 130, 200}, 200, 100) == 200);
    CHECK(rewind_target({120, 130, 200}, 150, 100) == 130);
    CHECK(rewind_target({200}, 150, 100) == -1);
    BadStepState now, saved;
    saved.seen = {{98, 2.0, 1.0}};
    now.seen = {{149, 2.0, 1.0}};
    now.skipped = 1;
    const BadStepState once = rewound(now, saved, 150, 100);
    CHECK(once == BadStepState{saved.seen, 0, 1, 51});  // batches 100 to 150
    // Step 120 trains on batch 171. A rewind passes over batches 151 to 171, too.
    const BadStepState twice = rewound(once, saved, 120, 100);
    CHECK(twice == BadStepState{saved.seen, 0, 2, 72});
  }

  TEST_CASE("a manifest has all bits of it") {
    Manifest manifest;
    manifest.format = "F32";
    CHECK(to_json(manifest).find("bad_steps") == std::string::npos);
    manifest.bad_steps = {{{7, 1.0 / 3, 1e-300}, {8, 1e300, std::nextafter(2.0, 3.0)}}, 4, 2, 51};
    CHECK(parse_manifest(to_json(manifest), "m").bad_steps == manifest.bad_steps);
  }
}

}  // namespace polyphony::exec
