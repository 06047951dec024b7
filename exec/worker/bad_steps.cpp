#include "exec/worker/bad_steps.h"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace polyphony::exec {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::string digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// The median of an even number of values is the mean of the two in the middle.
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double limit(double factor, const std::vector<double>& values) {
  const double middle = median(values);
  return factor > 0 && middle > 0 ? factor * middle : kNoLimit;
}

std::string above(const char* what, double value, double factor, double limit) {
  return std::string("its ") + what + ", " + digits(value) + ", is more than " + digits(factor) +
         " times the median, " + digits(limit / factor);
}

}  // namespace

StepLimits limits_of(const BadStepPolicy& policy, const BadStepState& state, std::int64_t step) {
  if (policy.spikes == BadStepAction::ignore) return {};
  const auto wanted = static_cast<std::size_t>(policy.window);
  std::vector<double> losses, norms;
  for (auto seen = state.seen.rbegin(); seen != state.seen.rend() && losses.size() < wanted; ++seen)
    if (seen->step < step - 1) {
      losses.push_back(seen->loss);
      norms.push_back(seen->gradient_norm);
    }
  if (losses.size() < wanted) return {};
  return {limit(policy.loss_factor, losses), limit(policy.norm_factor, norms)};
}

Verdict judge(const BadStepPolicy& policy, const StepLimits& limits, std::int64_t step,
              const StepScalars& scalars, BadStepState& state) {
  if (policy.spikes != BadStepAction::ignore && scalars.finite) {
    state.seen.push_back({step, scalars.loss, scalars.gradient_norm});
    // One more than the window, which ends before the previous step.
    const auto kept = static_cast<std::size_t>(policy.window) + 1;
    if (state.seen.size() > kept)
      state.seen.erase(state.seen.begin(), state.seen.end() - static_cast<std::ptrdiff_t>(kept));
  }
  if (!scalars.skipped) {
    state.skipped = 0;
    return {};
  }
  ++state.skipped;
  Verdict verdict{policy.spikes, {}, {}};
  if (!scalars.finite) {
    verdict = {policy.non_finite, "non-finite values", "it has non-finite values"};
  } else if (scalars.loss > limits.loss) {
    verdict.kind = "loss";
    verdict.why = above("loss", scalars.loss, policy.loss_factor, limits.loss);
  } else {
    verdict.kind = "gradient norm";
    verdict.why =
        above("gradient norm", scalars.gradient_norm, policy.norm_factor, limits.gradient_norm);
  }
  const auto stop = [&](const std::string& after) {
    verdict.action = BadStepAction::stop;
    verdict.why += after;
  };
  if (verdict.action == BadStepAction::rewind && state.rewinds >= policy.most_rewinds)
    stop(", after " + std::to_string(state.rewinds) + " rewinds (--max-rewinds)");
  else if (verdict.action == BadStepAction::skip && policy.most_skips > 0 &&
           state.skipped >= policy.most_skips)
    stop(", and is the last of " + std::to_string(state.skipped) +
         " steps in a row without an update (--max-skips)");
  return verdict;
}

std::int64_t rewind_target(const std::vector<std::int64_t>& saved, std::int64_t bad_step,
                           std::int64_t rewind_every) {
  std::int64_t newest = -1, regular = -1;
  for (const std::int64_t step : saved) {
    if (step > bad_step) break;
    newest = step;
    if (step % rewind_every == 0) regular = step;
  }
  return regular >= 0 ? regular : newest;
}

BadStepState rewound(const BadStepState& now, const BadStepState& saved, std::int64_t bad_step,
                     std::int64_t checkpoint) {
  BadStepState state = saved;
  state.rewinds = now.rewinds + 1;
  state.passed_over = now.passed_over + bad_step + 1 - checkpoint;
  return state;
}

}  // namespace polyphony::exec
