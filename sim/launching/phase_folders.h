// The folders of a run in phases (shared/scenario_io/phases.h): OUT/PHASE is the folder of a run
// (shared/files/run_paths.h) for each phase. When a phase has ended, its folder gets a record of
// the end (shared/checkpoint/phase_end_json.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shared/checkpoint/phase_end_json.h"
#include "shared/files/run_folder.h"
#include "shared/scenario_io/phases.h"

namespace polyphony::sim {

std::string phase_folder(const std::string& out, const std::string& phase);
// Returns whether a folder holds a run: files or checkpoints.
bool holds_run(const std::string& folder);

// Returns the position of the first phase that is still to be trained; their number if all have
// ended. Throws InputError that names the folder
//   if `earlier` is refuse, and a folder holds a run;
//   if `earlier` is resume, and a phase that has ended was trained with another scenario, or a
//   phase after the returned one has already begun: it began with other parameters.
std::size_t first_to_train(const std::string& out, const std::vector<TrainingPhase>& phases,
                           EarlierRun earlier);
// Throws InputError if one of the phases in `later` has begun: it began with parameters that
// training phase `phase` would change.
void check_later_phases(const std::string& out, const std::string& phase,
                        const std::vector<std::string>& later);
// Removes the runs of these phases.
void remove_phases(const std::string& out, const std::vector<std::string>& phases);

}  // namespace polyphony::sim
