// The phases of a training run (align, joint, long context): the key "phases" of a scenario file.
//   "phases": [{"name": "align", "change": {"model": {"language": {"train": "frozen"}}}},
//              {"name": "joint"}]
// The scenario of a phase is the file without this key, changed by RFC 7396 where the phase has a
// change: any keys, such as model.language.train, data, training, layout or search. A phase begins
// with the parameters that the one before has trained (shared/checkpoint/carried_weights.h), so
// all have the same modules; published weights begin the first phase only.
#pragma once

#include <string>
#include <vector>

#include "shared/scenario_io/scenario_json.h"

namespace polyphony {

struct TrainingPhase {
  std::string name;
  Scenario scenario;
};

// Returns the names of a file's phases, in order; empty if it has none. Throws InputError.
std::vector<std::string> phase_names(const std::string& text, const std::string& file,
                                     const LoadText& load);
// Reads all phases of a file, in order; none if it has no phases. The overrides replace values of
// every phase. Throws InputError as read_scenario() does, and if a phase cannot begin with the
// parameters of the phase before.
std::vector<TrainingPhase> read_phases(const std::string& text, const std::string& file,
                                       const LoadText& load,
                                       const std::vector<Override>& overrides = {});

}  // namespace polyphony
