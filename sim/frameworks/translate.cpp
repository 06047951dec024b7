#include "sim/frameworks/translate.h"

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

}  // namespace polyphony::sim
