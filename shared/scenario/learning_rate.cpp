#include "shared/scenario/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace polyphony {

std::int64_t decay_end(const Training& training) {
  return training.decay_steps > 0 ? training.decay_steps : training.steps;
}

std::int64_t wsd_decay(const Training& training) {
  constexpr std::int64_t kTenth = 10;
  return training.wsd_decay_steps > 0 ? training.wsd_decay_steps
                                      : std::max<std::int64_t>(1, decay_end(training) / kTenth);
}

double learning_rate(const Training& training, std::int64_t step) {
  const double most = training.learning_rate, least = training.min_learning_rate;
  const std::int64_t warm_up = training.warmup_steps;
  if (step < warm_up) return most * static_cast<double>(step + 1) / static_cast<double>(warm_up);
  const std::int64_t end = decay_end(training);
  const bool stable_first = training.decay == RateDecay::wsd;
  const std::int64_t begin = stable_first ? std::max(warm_up, end - wsd_decay(training)) : warm_up;
  const double past =
      end > begin ? static_cast<double>(step - begin) / static_cast<double>(end - begin) : 1;
  const double share = std::clamp(past, 0.0, 1.0);
  switch (training.decay) {
    case RateDecay::constant:
      return most;
    case RateDecay::linear:
    case RateDecay::wsd:
      return least + (most - least) * (1 - share);
    case RateDecay::cosine:
      return least + (most - least) * (1 + std::cos(std::numbers::pi * share)) / 2;
  }
  return most;
}

double rate_factor(const Training& training, ModuleId module) {
  return module.value < training.rate_factors.size() ? training.rate_factors[module.value] : 1;
}

}  // namespace polyphony
