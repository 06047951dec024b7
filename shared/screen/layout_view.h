// How a layout divides a batch over lanes and modules into stages: the view of a layout over which
// the closed forms of shared/screen/bound.h sum. It may have any number of branches, on ranks of
// their own or shared. Remembers what layouts have in common. Source: own count, of what
// shared/plan/ plans.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/plan/plan.h"
#include "shared/scenario/scenario.h"
#include "shared/screen/action_moments.h"
#include "shared/screen/branch_loads.h"
#include "shared/screen/known.h"
#include "shared/screen/stack_layers.h"

namespace polyphony {

// A pipeline stage, as runs of layers in their order.
using StageRuns = std::vector<LayerRun>;

struct BranchView {
  const std::vector<ModuleId>* modules = nullptr;
  const ModuleLayout* grid = nullptr;
  int works = 1;
  bool shared = false;  // another branch is on the same ranks
  const BranchLoad* load = nullptr;
  const std::vector<StageRuns>* stages = nullptr;
};

// The ranks along pipelines that represent all ranks: one for each pipeline index of each set of
// branches on the same ranks.
using PipelineRanks = std::vector<RankMoments>;

struct LayoutView {
  const Layout* layout = nullptr;
  std::vector<BranchView> branches;  // in the plan's order
  std::size_t language = 0;
  bool differing = false;  // the works of some column differ
  const PipelineRanks* ranks = nullptr;
};

// Returns whether `branch` is the one, among the branches on a rank, whose busiest column the rank
// is assumed to have.
bool leads(const LayoutView& view, const RankMoments& rank, std::size_t branch);

// Scenario, profile and batch must outlive it.
class LayoutViews {
 public:
  LayoutViews(const Scenario& scenario, const HardwareProfile& profile, const Batch& batch);

  // Returns the view of a layout; it is valid until the next call.
  const LayoutView& look(const Layout& layout);
  std::string stage_name(const LayoutView& view, StageOfBranch stage) const;
  // Returns whether every sample has items for the branch.
  bool everywhere(const LayoutView& view, std::size_t branch) const;
  // Returns all actions of a rank of the current view.
  Actions actions(const RankMoments& rank) const;

 private:
  // Modules of each branch: all modules of a chain, or one owner with its projectors each.
  struct Parts {
    std::vector<std::vector<ModuleId>> modules, owners;
    std::vector<char> everywhere;
    std::size_t language = 0;
  };
  Parts make_parts(bool chain) const;
  const std::vector<StageRuns>& split(const Layout& layout, std::size_t branch, const Parts& parts,
                                      const ModuleLayout& grid);
  const std::vector<LayerCost>& costs(const Layout& layout, ModuleId module);
  std::vector<int> few_works(const Layout& layout) const;
  Plan plan_with(const Layout& layout, const std::vector<int>& works) const;
  PipelineRanks make_ranks(const Layout& layout, const std::vector<int>& works) const;
  const PipelineRanks& ranks_of(const Layout& layout);

  const Scenario& scenario_;
  const HardwareProfile& profile_;
  const Cluster healthy_;
  const HopTimes hops_;
  const std::vector<WorkSize> typical_;  // of the typical batch by module
  BranchLoads loads_;
  Parts chain_, separate_;
  MemoTable<std::vector<LayerCost>> costs_;
  MemoTable<std::vector<StageRuns>> stages_;
  MemoTable<PipelineRanks> ranks_;
  PipelineRanks own_ranks_;  // of a layout with actions of its own
  LayoutView view_;
  ModuleLayout chain_grid_;  // of the current layout, if it differs from its last module's grid
  Key key_;
};

}  // namespace polyphony
