#include "sim/evidence/profile_check.h"

#include <algorithm>

#include "shared/chance/belief.h"
#include "sim/evidence/profile_tables.h"
#include "sim/evidence/quick_step.h"
#include "sim/prediction/effects.h"

namespace polyphony::sim {

bool ProfileCheck::passed() const {
  return implausible.empty() && std::none_of(steps.begin(), steps.end(),
                                             [](const CheckedStep& step) { return step.beyond; });
}

ProfileCheck check_profile(const HardwareProfile& profile,
                           const std::vector<StepEvidence>& evidence) {
  for (const StepEvidence& one : evidence)
    if (!one.kernels.empty() && !one.step)
      throw InputError(one.source, "", "has no whole step, and kernels are not compared here",
                       "give a log or a step time, too; `polyphony calibrate` compares kernels");
  ProfileCheck check;
  check.implausible = implausible(profile);
  for (const StepEvidence& one : evidence) {
    if (one.scenario.cluster.device.name != profile.device.name)
      throw InputError(one.source, "",
                       "is of " + one.scenario.cluster.device.name + ", " + profile.name + " of " +
                           profile.device.name,
                       "name the profile of that device");
    const Prediction prediction = quick_step(one.scenario, profile);
    if (one.memory || one.reserved)
      check.memory.push_back({one.source, one.memory ? *one.memory : *one.reserved,
                              most_memory(prediction), !one.memory});
    if (!one.step) continue;
    const Belief belief = make_belief(
        prediction.step(),
        step_effects(prediction.program, prediction.compiled, one.scenario.cluster, profile),
        profile, one.scenario, prediction.program.layout);
    const SecondsInterval bounds = interval(belief), all = interval(belief, 0.999);
    check.steps.push_back({one.source, belief.step, bounds.low, bounds.high, *one.step,
                           *one.step >= bounds.low && *one.step <= bounds.high,
                           *one.step < all.low || *one.step > all.high});
  }
  return check;
}

}  // namespace polyphony::sim
