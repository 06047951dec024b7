#pragma once

#include "shared/scenario/scenario.h"

namespace polyphony {

// A batch that stands for the scenario's data when balancing stages: the first of a synthetic
// stream; for recorded data, whose text shared/ never opens, samples of the sequence length.
Batch typical_batch(const Scenario& scenario);
// Of a later step: another one where data are synthetic.
Batch batch_of_step(const Scenario& scenario, std::uint64_t step);

}  // namespace polyphony
