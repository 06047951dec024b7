// What the lanes and contexts of one branch have to do in a step, summed up: enough to bound times
// and bytes without a Program. Works are shared/step/assign.h's own; where neither contexts nor
// images are dealt, their sizes come from sums over the samples before each, so that one costs a
// subtraction.
//   A column is what one lane and context works on, work after work. The busiest has most tokens,
//   each module's weighted by its parameters; of equals, most pairs. Source: own count.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/plan/plan.h"
#include "shared/program/work.h"
#include "shared/screen/known.h"

namespace polyphony {

struct ModuleLoad {
  std::vector<WorkSize> sizes;  // of the busiest column, by kind of work
  WorkSize smallest;            // over all columns
  WorkSize smallest_full;       // of those that have tokens; zero when none has
};

struct BranchLoad {
  int id = 0;     // different loads of one BranchLoads have different ones
  int works = 0;  // of a column
  // Of the modules of the branch, by ModuleId; others have no work.
  std::vector<ModuleLoad> modules;
  // Kinds of works of the busiest column (shared/screen/work_kinds.h): how many of each; of which
  // each work is.
  std::vector<int> counts;
  std::vector<std::uint16_t> kind_of;
  bool alike = false;  // all works of all columns are
};

class BranchLoads {
 public:
  // Model and batch must outlive it.
  BranchLoads(const Model& model, const Batch& batch);

  // `modules`: of the branch. `works`: its own a column and step; `microbatches`: the language
  // module's.
  const BranchLoad& load(const std::vector<ModuleId>& modules, const ModuleLayout& grid, int works,
                         int microbatches);
  // Whether every sample has something for a branch of these modules.
  bool everywhere(const std::vector<ModuleId>& modules) const;

 private:
  // Samples that a branch works on: sums of module sizes over those before each.
  struct Samples {
    std::vector<std::uint32_t> before;          // by sample of the batch: members before it
    std::vector<std::vector<WorkSize>> prefix;  // by module of the branch, then member
  };
  // Sizes by module of the branch, then (work·columns + column).
  using Table = std::vector<std::vector<WorkSize>>;

  const Samples& samples_of(const std::vector<ModuleId>& modules);
  Table cut(const std::vector<ModuleId>& modules, const ModuleLayout& grid, int works,
            int microbatches);
  Table assign(const std::vector<ModuleId>& modules, const ModuleLayout& grid, int works,
               int microbatches, const Batch& batch) const;
  // Where all samples are alike, works of as many samples are, and so few stand for all.
  struct Rows {
    std::vector<std::size_t> samples;  // of each, over all lanes
    std::vector<std::uint32_t> of;     // by work
  };
  Rows rows_of(int works, int microbatches) const;
  Table repeat(const std::vector<ModuleId>& modules, const ModuleLayout& grid, std::size_t lanes,
               const std::vector<std::size_t>& members);
  const Item* item_alike(const std::vector<ModuleId>& modules) const;
  WorkSize items_of(ModuleId module, const Item& item, std::size_t count);
  // Of a table whose rows are those of the works `row_of` says.
  BranchLoad sum_up(const std::vector<ModuleId>& modules, const Table& table,
                    const std::vector<std::uint32_t>& row_of, std::size_t columns) const;
  bool has_language(const std::vector<ModuleId>& modules) const;

  const Model& model_;
  const Batch& batch_;
  std::vector<double> weights_;  // parameters by module
  bool samples_alike_ = true;
  int loads_ = 0;
  Known<BranchLoad> known_;
  Known<Samples> samples_;
  Known<WorkSize> items_;
  Known<Table> repeated_;  // of one work of some samples
  Key key_;
};

}  // namespace polyphony
