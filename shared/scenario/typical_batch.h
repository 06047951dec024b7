// The global batches that a scenario trains on. Planning, prediction and the executor all use these
// functions and therefore see the same batches.
#pragma once

#include "shared/scenario/scenario.h"

namespace polyphony {

// Returns the global batch of `step`: drawn from the distributions of synthetic data, or taken from
// the samples of a data set. Throws InputError if the data set's files have not been read
// (Data::samples is empty).
Batch batch_of_step(const Scenario& scenario, std::uint64_t step);

// Returns the batch that represents the scenario's data when stages are balanced and a step is
// predicted: the batch of step 0.
Batch typical_batch(const Scenario& scenario);

}  // namespace polyphony
