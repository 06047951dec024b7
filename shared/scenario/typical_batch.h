// What a scenario's steps train on: the same batches for planning, prediction and the executor.
#pragma once

#include "shared/scenario/scenario.h"

namespace polyphony {

// The global batch of `step`: drawn from the distributions of synthetic data, or taken from the
// samples of a data set. Errors: InputError when the data set's files have not been read
// (Data::samples).
Batch batch_of_step(const Scenario& scenario, std::uint64_t step);

// The batch that stands for the scenario's data when stages are balanced and a step is predicted:
// the first.
Batch typical_batch(const Scenario& scenario);

}  // namespace polyphony
