// What a replay with changes starts from: the run's scenario with values replaced, and the profiles
// that price its ops.
#pragma once

#include <vector>

#include "shared/scenario_io/overrides_json.h"
#include "traces/evidence/measurement.h"

namespace polyphony::sim {

// Returns the overrides and further ones, which remove the split of blocks over stages from each
// module whose number of stages or layers changes: it has no meaning for another number. A split
// that an override states is kept. `layout`: the value of the key in the run's scenario file.
std::vector<Override> without_old_splits(const std::vector<Override>& overrides,
                                         const JsonValue& layout);

// Reads the run's scenario file again with the overrides applied, and the samples of its data set.
// Blocks are split over stages as in the run unless the overrides change that. Throws InputError as
// load_scenario() does, and if there is no layout.
Scenario changed_scenario(const traces::Measurement& measured,
                          const std::vector<Override>& overrides);

// Returns whether the changed scenario runs on another device than the run did. Never of a
// rehearsal: the devices of its profile are emulated.
bool changes_device(const traces::Measurement& measured, const Scenario& changed);

struct RunProfiles {
  HardwareProfile prior, fitted;  // as given, and fitted to the run
};
// Fits a profile to the run. For a rehearsal both are the profile that its compute ops were
// emulated by, and `prior` is not used.
RunProfiles run_profiles(const traces::Measurement& measured, const HardwareProfile& prior);

}  // namespace polyphony::sim
