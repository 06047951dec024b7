// What work items hold, and how much that is: items by module, rows by item, sizes for the layers.
#pragma once

#include "shared/program/program.h"

namespace polyphony {

// The work table of one step: the fields of Program by those names.
//   Works of a branch are consecutive, by index, lane, context. A part of a table
//   (shared/step/step_part.h) has some of them.
struct WorkTable {
  std::vector<Work> works;
  std::vector<std::uint32_t> work_samples;
  std::vector<WorkItem> work_items;
  std::vector<Interval> work_rows;
  std::vector<std::uint32_t> first_work;  // by branch
  bool part = false;

  // Positions in `works`.
  Range of_branch(std::size_t branch) const;
  // Where one stands among the works of its branch.
  std::uint32_t place_of(std::size_t branch, std::uint32_t index, std::uint32_t lane,
                         std::uint32_t context) const;
  bool operator==(const WorkTable&) const = default;
};
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

}  // namespace polyphony
