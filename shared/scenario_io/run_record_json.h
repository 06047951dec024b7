// The run record: the part of a scenario that a checkpoint stores, and its comparison with the
// scenario of a resumed run.
//
// Layout, cluster and number of steps are not part of the record: a checkpoint can be resumed with
// any layout. Other differences either change the training (they are reported) or mean that the
// parameters belong to another model (the checkpoint is rejected).
#pragma once

#include <string>
#include <vector>

#include "shared/scenario/scenario.h"

namespace polyphony {

// Returns model, data and training, in resolved form, as one line of JSON.
std::string run_record(const Scenario& scenario);

struct RecordDifferences {
  // Differences with which training continues, using the new value: "data.global_batch was 8, is
  // 16".
  std::vector<std::string> changed;
  // Differences in the model, with which the stored parameters belong to another model.
  std::vector<std::string> another_model;
};
// Compares the record of a checkpoint (`then`) with that of the current scenario (`now`). Throws
// InputError that names `file` if a record is not valid.
RecordDifferences compare_records(const std::string& then, const std::string& now,
                                  const std::string& file);

}  // namespace polyphony
