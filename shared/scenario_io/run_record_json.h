// What a checkpoint remembers of the scenario that it was trained with, and how another scenario
// differs: what continues the same training, what changes it (said), what is another model (refused).
// Layout, cluster and number of steps may change freely: any layout resumes.
#pragma once

#include <string>
#include <vector>

#include "shared/scenario/scenario.h"

namespace polyphony {

// Model, data and training as one line of JSON, everything spelled out.
std::string run_record(const Scenario& scenario);

struct RecordDifferences {
  // "data.global_batch was 8, is 16". The training goes on with the new value.
  std::vector<std::string> changed;
  // The same of what the numbers mean: with these the parameters are another model's.
  std::vector<std::string> another_model;
};
// InputError, naming `file`, when `then` is no record.
RecordDifferences compare_records(const std::string& then, const std::string& now,
                                  const std::string& file);

}  // namespace polyphony
