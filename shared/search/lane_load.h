// What the lanes of a layout's branches have to do in a step, summed up: enough to bound times
// without a Program.
//   The busiest lane (most tokens, each module's weighted by its parameters); the smallest and
//   largest work item over all lanes, field by field. Works are cut as in shared/plan/assign.h,
//   from sums over the samples before each, so that a work item costs a subtraction. Source: own
//   count.
#pragma once

#include <utility>
#include <vector>

#include "shared/plan/plan.h"
#include "shared/program/work.h"

namespace polyphony {

struct ModuleLoad {
  std::vector<WorkSize> lane;  // work items of the busiest lane
  WorkSize total;              // of the busiest lane
  WorkSize smallest;           // over all work items
  WorkSize smallest_full;      // over the work items that have tokens; zero when none has
  WorkSize largest;            // over all work items
  int works = 0;               // per lane
};
// By branch, then by ModuleId; modules outside the branch have no work.
using BranchLoads = std::vector<std::vector<ModuleLoad>>;

// Distinct sizes of a lane's works with how many there are. Many are joined in groups of neighbours
// by tokens, each standing for its smallest, field by field: times grow in every field, so that a
// sum over them stays a lower bound.
std::vector<std::pair<WorkSize, int>> representatives(std::vector<WorkSize> works);

class LaneLoads {
 public:
  LaneLoads(const Model& model, const Batch& batch);
  // Of a plan whose stages are not looked at: grids and works are enough. One branch holds all
  // modules; of two, the last the last module.
  BranchLoads sum(const Plan& plan) const;

 private:
  // Samples of one branch: sums of module sizes over the samples before each position.
  struct Samples {
    std::vector<std::size_t> before;            // by sample of the batch: members before it
    std::vector<std::vector<WorkSize>> prefix;  // by module, then member
  };
  Samples add_up(const Model& model, const Batch& batch, bool with_images_only) const;
  std::vector<ModuleLoad> sum_branch(const Branch& branch, int fed, int microbatches,
                                     const Samples& samples, std::size_t first_module,
                                     std::size_t end_module) const;

  std::size_t batch_size_;
  std::vector<double> weights_;  // parameters by module
  Samples all_, with_images_;
};

}  // namespace polyphony
