#include "sim/frameworks/translate.h"

#include <algorithm>

namespace polyphony::sim {

void read_training_number(SettingReader& settings, const char* key, const char* to,
                          RunSettings& run) {
  const std::optional<double> value = settings.number(key, std::string("training.") + to);
  if (value && *value >= 0) run.training[to] = *value;
}

void read_training_steps(SettingReader& settings, const char* key, const char* to,
                         RunSettings& run) {
  const std::optional<std::int64_t> steps = settings.integer(key, std::string("training.") + to);
  if (steps && *steps > 0) run.training[to] = *steps;
}

int parallel_degree(SettingReader& settings, const char* key, const char* what) {
  const auto value = settings.integer(key, what);
  return static_cast<int>(std::clamp<std::int64_t>(value.value_or(1), 1, 1000000));
}

void train_by_lora(std::optional<std::int64_t> rank, RunSettings& run) {
  run.train.emplace_back("language", "lora");
  run.lora_rank = static_cast<int>(std::clamp<std::int64_t>(rank.value_or(8), 1, 100000));
}

}  // namespace polyphony::sim
