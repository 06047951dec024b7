// Which samples each work item holds, and how large it is for each module.
#pragma once

#include "shared/plan/plan.h"
#include "shared/program.h"

namespace polyphony {

// The work table of one step: Program::works, work_samples and sizes are filled from it.
//   Works of a branch are consecutive: first_work[branch] + index·dp + lane.
struct WorkTable {
  std::vector<Work> works;
  std::vector<std::uint32_t> work_samples;
  std::vector<std::uint32_t> first_work;  // by branch
};
WorkTable assign_work(const Plan& plan, const Batch& batch);

// The size of one list of samples (positions in the batch) for one module.
WorkSize work_size(const Model& model, ModuleId module, const Batch& batch,
                   const std::uint32_t* samples, std::size_t count);
// Rows that one sample occupies at the input of the language module from its images (after the
// projector's merge), and on the encoder's own axis (patches).
std::int64_t image_rows(const Model& model, const Sample& sample);
std::int64_t image_patches(const Sample& sample);

// A batch that stands for the scenario's data when balancing stages: the first of a synthetic
// stream; for recorded data, whose text shared/ never opens, samples of the sequence length.
Batch typical_batch(const Scenario& scenario);

}  // namespace polyphony
