// The work of the lanes and context-parallel ranks of one branch in a step, summed up: enough to
// bound times and bytes without a Program.
//   A column is one data-parallel lane and context-parallel rank, which processes one work
//   (see shared/plan/links.h) after another. The busiest column has the most tokens, where each
//   module's tokens are weighted by its parameters; among equals, the most attended pairs.
//
//   Works are the same as in shared/step/assign.h. Where neither tokens nor single images are
//   divided over ranks, their sizes are differences of prefix sums over the samples, so that each
//   costs one subtraction. Source: own count.
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
  WorkSize smallest_full;       // of those that have tokens; zero if none has
};

struct BranchLoad {
  int id = 0;     // unique among the loads of one BranchLoads
  int works = 0;  // number of works per column
  // By ModuleId; modules of other branches have no load.
  std::vector<ModuleLoad> modules;
  // Kinds of works of the busiest column (shared/screen/work_kinds.h): how many there are of
  // each, and the kind of each work.
  std::vector<int> counts;
  std::vector<std::uint16_t> kind_of;
  bool alike = false;  // all works of all columns are equal
};

class BranchLoads {
 public:
  // Model and batch must outlive it.
  BranchLoads(const Model& model, const Batch& batch);

  // Returns the load of a branch of `modules`. `works`: its works per column and step;
  // `microbatches`: those of the language module.
  const BranchLoad& load(const std::vector<ModuleId>& modules, const ModuleLayout& grid, int works,
                         int microbatches);
  // Returns whether every sample has items for a branch of these modules.
  bool everywhere(const std::vector<ModuleId>& modules) const;

 private:
  // The samples that a branch processes, and prefix sums of their sizes.
  struct Samples {
    std::vector<std::uint32_t> before;          // by sample of the batch: members before it
    std::vector<std::vector<WorkSize>> prefix;  // by module of the branch, then member
  };
  // Sizes by module of the branch, then work · columns + column.
  using Table = std::vector<std::vector<WorkSize>>;

  const Samples& samples_of(const std::vector<ModuleId>& modules);
  Table cut(const std::vector<ModuleId>& modules, const ModuleLayout& grid, int works,
            int microbatches);
  Table assign(const std::vector<ModuleId>& modules, const ModuleLayout& grid, int works,
               int microbatches, const Batch& batch) const;
  // If all samples are equal, works with equally many samples are equal, and few represent
  // all.
  struct Rows {
    std::vector<std::size_t> samples;  // of each distinct row, over all lanes
    std::vector<std::uint32_t> of;     // by work: its row
  };
  Rows rows_of(int works, int microbatches) const;
  Table repeat(const std::vector<ModuleId>& modules, const ModuleLayout& grid, std::size_t lanes,
               const std::vector<std::size_t>& members);
  const Item* item_alike(const std::vector<ModuleId>& modules) const;
  WorkSize items_of(ModuleId module, const Item& item, std::size_t count);
  // Returns the sums over a table; `row_of` states the row of each work.
  BranchLoad sum_up(const std::vector<ModuleId>& modules, const Table& table,
                    const std::vector<std::uint32_t>& row_of, std::size_t columns) const;
  bool has_language(const std::vector<ModuleId>& modules) const;

  const Model& model_;
  const Batch& batch_;
  std::vector<double> weights_;  // parameters by module
  bool samples_alike_ = true;
  int loads_ = 0;
  MemoTable<BranchLoad> known_;
  MemoTable<Samples> samples_;
  MemoTable<WorkSize> items_;
  MemoTable<Table> repeated_;  // of one work of some samples
  Key key_;
};

}  // namespace polyphony
