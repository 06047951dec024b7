// Loads what a question names from files: scenarios, the samples of their data sets, profiles.
// Prints nothing; notes are in Scenario::notes.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"
#include "shared/scenario_io/overrides_json.h"
#include "shared/scenario_io/phases.h"

namespace polyphony::sim {

// A profile and a software stack by name or file; empty: those of the scenario.
struct ProfileChoice {
  std::string profile, stack;
};

// Reads a scenario file, with the overrides applied (those of "profile." are left for
// load_profile()), and the samples of its data set. `downloads`: folder of downloaded data sets;
// empty: that of the set-up. `phase`: which of the file's phases is read; empty: it has none.
// Throws InputError if a file is missing or wrong.
Scenario load_scenario(const std::string& path, const std::vector<Override>& overrides = {},
                       const std::string& downloads = "", const std::string& phase = "");
// The two parts of load_scenario(): the scenario without samples, and its samples.
Scenario read_scenario_file(const std::string& path, const std::vector<Override>& overrides = {},
                            const std::string& phase = "");
void read_samples(Scenario& scenario, const std::string& downloads = "");
// Returns the folder of downloaded data sets of the set-up.
std::string setup_downloads();

// Return the names of a scenario file's phases, and all phases without samples (with the overrides
// applied to each); empty if the file has none. Throw InputError.
std::vector<std::string> phases_of_file(const std::string& path);
std::vector<TrainingPhase> read_phases_file(const std::string& path,
                                            const std::vector<Override>& overrides = {});

// Returns the profile by which the scenario is predicted (shared/scenario_io/scenario_profile.h),
// with the overrides of "profile." applied.
HardwareProfile load_profile(const Scenario& scenario, const ProfileChoice& choice = {},
                             const std::vector<Override>& overrides = {});

}  // namespace polyphony::sim
