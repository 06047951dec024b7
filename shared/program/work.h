// The contents of microbatches (type Work) and their sizes: which items each module processes, and
// how many rows an item has.
#pragma once

#include "shared/program/program.h"

namespace polyphony {

// The microbatches of one step. The fields have the names and meanings that they have in Program.
//   The entries of a branch are consecutive in `works`, ordered by index, lane and context. A part
//   of a table (shared/step/step_part.h) has some of them.
struct WorkTable {
  std::vector<Work> works;
  std::vector<std::uint32_t> work_samples;
  std::vector<ItemOfWork> items_of_works;
  std::vector<Interval> work_rows;
  std::vector<std::uint32_t> first_work;  // by branch: position in `works`
  bool part = false;                      // some entries are missing

  // Returns the positions in `works` of the microbatches of a branch.
  Range of_branch(std::size_t branch) const;
  // Returns the position of a microbatch among those of its branch.
  std::uint32_t place_of(std::size_t branch, std::uint32_t index, std::uint32_t lane,
                         std::uint32_t context) const;
  bool operator==(const WorkTable&) const = default;
};
// Returns the size of one microbatch for one module of its branch.
WorkSize work_size(const Model& model, ModuleId module, const Batch& batch, const WorkTable& table,
                   const Work& work);
// Returns the size of `count` whole samples (positions in the batch) for one module.
WorkSize work_size(const Model& model, ModuleId module, const Batch& batch,
                   const std::uint32_t* samples, std::size_t count);

// Returns true if `module` processes items of this modality (a projector: those of its source).
bool takes(const Model& model, ModuleId module, Modality modality);
// Returns the number of rows of an item at the output of a module that processes it.
std::int64_t item_rows(const Model& model, ModuleId module, const Item& item);
// Returns the number of rows of an item, or of all items of a sample, in the language sequence.
std::int64_t language_rows(const Model& model, const Item& item);
std::int64_t language_rows(const Model& model, const Sample& sample);
// Returns true if the sample has an item that `module` processes.
bool has_items(const Model& model, ModuleId module, const Sample& sample);

// Returns the number of rows of a sample's images at the input of the language module, and in the
// vision encoder (patches).
std::int64_t image_rows(const Model& model, const Sample& sample);
std::int64_t image_patches(const Sample& sample);

}  // namespace polyphony
