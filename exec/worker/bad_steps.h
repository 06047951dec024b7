// What training does about bad steps: those with non-finite values, and spikes.
//   A step is a spike if its loss is above loss_factor times the median loss, or its gradient norm
//   (before clipping) above norm_factor times the median norm, of the newest `window` steps with
//   finite values before the previous step. A step that fewer steps precede is not judged. The
//   previous step does not count because a device gets a step's limits while that one still runs.
//   skip     the step's update is left out
//   rewind   the run goes back to a checkpoint, and on with the samples after the bad step; those
//            since the checkpoint are passed over
//   stop     the run ends with an error
// Losses and norms are sums over all ranks, so all ranks decide alike without another exchange. A
// resumed run decides as if it had not stopped: checkpoints store the BadStepState, and a rewind
// goes back to a checkpoint of every rewind_every-th step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/runner/runner.h"
#include "shared/checkpoint/bad_step_state.h"
#include "shared/enum_names.h"

namespace polyphony::exec {

enum class BadStepAction : std::uint8_t { ignore, skip, rewind, stop };
constexpr auto names(BadStepAction) {
  return names_of<BadStepAction>("ignore", "skip", "rewind", "stop");
}

// The defaults are our choices: norms of a run that goes well stay below about twice their median,
// and 64 steps have a steady one; a hundred skipped steps in a row have no way back.
struct BadStepPolicy {
  BadStepAction spikes = BadStepAction::ignore;
  BadStepAction non_finite = BadStepAction::skip;  // not ignore
  double norm_factor = 4, loss_factor = 2;         // 0: not judged
  int window = 64;                                 // steps
  int most_skips = 100;                            // in a row; then the run stops; 0: no limit
  int most_rewinds = 3;                            // then the run stops
  std::int64_t rewind_every = 100;                 // steps between checkpoints for rewinds

  bool rewinds() const {
    return spikes == BadStepAction::rewind || non_finite == BadStepAction::rewind;
  }
};

// Returns the limits above which the step is a spike; infinite if it is not judged.
StepLimits limits_of(const BadStepPolicy& policy, const BadStepState& state, std::int64_t step);

struct Verdict {
  BadStepAction action = BadStepAction::ignore;
  std::string kind;  // "loss", "gradient norm" or "non-finite values"; empty: the step is good
  std::string why;   // in words
};
// Judges a step that has ended, and adds it to `state`. `limits`: those that the step had.
Verdict judge(const BadStepPolicy& policy, const StepLimits& limits, std::int64_t step,
              const StepScalars& scalars, BadStepState& state);

// Returns the step of the checkpoint to which a bad step rewinds, of those in `saved` (ascending);
// -1 if there is none.
std::int64_t rewind_target(const std::vector<std::int64_t>& saved, std::int64_t bad_step,
                           std::int64_t rewind_every);
// Returns the state after a rewind from a bad step to a checkpoint. `now`, `saved`: the states
// after the bad step and in the checkpoint.
BadStepState rewound(const BadStepState& now, const BadStepState& saved, std::int64_t bad_step,
                     std::int64_t checkpoint);

}  // namespace polyphony::exec
