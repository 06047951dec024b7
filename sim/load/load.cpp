#include "sim/load/load.h"

#include <cstdlib>
#include <optional>

#include "shared/files/whole.h"
#include "shared/scenario_io/data_set.h"
#include "shared/scenario_io/easy_vqa.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/scenario_io/scenario_profile.h"
#include "sim/load/profile_overrides.h"

namespace polyphony::sim {
namespace {

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::vector<Override> of_scenario(const std::vector<Override>& overrides) {
  std::vector<Override> own;
  for (const Override& override : overrides)
    if (!of_profile(override)) own.push_back(override);
  return own;
}

}  // namespace

Scenario read_scenario_file(const std::string& path, const std::vector<Override>& overrides,
                            const std::string& phase) {
  return read_scenario(read_file(path), path, read_file, of_scenario(overrides), phase);
}

std::vector<std::string> phases_of_file(const std::string& path) {
  return phase_names(read_file(path), path, read_file);
}

std::vector<TrainingPhase> read_phases_file(const std::string& path,
                                            const std::vector<Override>& overrides) {
  return read_phases(read_file(path), path, read_file, of_scenario(overrides));
}

std::string setup_downloads() { return download_folder(environment_variable); }

void read_samples(Scenario& scenario, const std::string& downloads) {
  load_samples(scenario, downloads.empty() ? setup_downloads() : downloads, read_records);
}

Scenario load_scenario(const std::string& path, const std::vector<Override>& overrides,
                       const std::string& downloads, const std::string& phase) {
  Scenario scenario = read_scenario_file(path, overrides, phase);
  read_samples(scenario, downloads);
  return scenario;
}

HardwareProfile load_profile(const Scenario& scenario, const ProfileChoice& choice,
                             const std::vector<Override>& overrides) {
  return overridden(scenario_profile(scenario, read_file, choice.profile, choice.stack), overrides);
}

}  // namespace polyphony::sim
