// Which samples, items and tokens each work item holds, and how large it is for each module.
//   Samples of the batch are cut into microbatches × lanes runs of equal counts (± one), in order.
//   Encoders: the items (images, clips, latents) of the language microbatches that the work item
//   feeds, over the encoder's lanes by sample, or one by one (Spread::images: the largest first, to
//   the lane and context with the least). Context parallelism: encoders deal whole items likewise;
//   the language module deals tokens (shared/plan/tokens.h).
#pragma once

#include "shared/plan/plan.h"
#include "shared/program/program.h"

namespace polyphony {

// The work table of one step: the fields of Program by those names.
//   Works of a branch are consecutive: first_work[branch] + (index·dp + lane)·cp + context.
struct WorkTable {
  std::vector<Work> works;
  std::vector<std::uint32_t> work_samples;
  std::vector<WorkItem> work_items;
  std::vector<Interval> work_rows;
  std::vector<std::uint32_t> first_work;  // by branch
};
WorkTable assign_work(const Model& model, const Plan& plan, const Batch& batch);

// The size of one work item for one module of its branch.
WorkSize work_size(const Model& model, ModuleId module, const Batch& batch, const WorkTable& table,
                   const Work& work);
// The size of a list of whole samples (positions in the batch) for one module.
WorkSize work_size(const Model& model, ModuleId module, const Batch& batch,
                   const std::uint32_t* samples, std::size_t count);

// True when `module` works on items of this modality (a projector: those of its source).
bool takes(const Model& model, ModuleId module, Modality modality);
// Rows that an item occupies at the output of a module that takes it, and in the language sequence.
std::int64_t item_rows(const Model& model, ModuleId module, const Item& item);
std::int64_t language_rows(const Model& model, const Item& item);
std::int64_t language_rows(const Model& model, const Sample& sample);
bool has_items(const Model& model, ModuleId module, const Sample& sample);

// Rows that one sample occupies at the input of the language module from its images, and on the
// encoder's own axis (patches).
std::int64_t image_rows(const Model& model, const Sample& sample);
std::int64_t image_patches(const Sample& sample);

// A batch that stands for the scenario's data when balancing stages: the first of a synthetic
// stream; for recorded data, whose text shared/ never opens, samples of the sequence length.
Batch typical_batch(const Scenario& scenario);

}  // namespace polyphony
