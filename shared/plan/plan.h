// From a layout to stages on ranks: which layers each pipeline stage holds, and which ranks run it.
// Made once per (model, layout).
//   A branch is one pipeline: one module with the projectors that read from it, or all modules when
//   homogeneous. Stage s runs on index rank_of_stage[s] of the pp ranks along its pipeline (more stages than
//   ranks: virtual stages), where its schedule places it. A stage is a list of chunks: layer ranges of one module,
//   cut where an edge enters or leaves between layers, and at every block of a fully sharded
//   module, so that its parameters are gathered block by block. What flows between chunks:
//   shared/plan/links.h.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "shared/error.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

struct Chunk {
  ModuleId module;
  LayerRange layers;
  bool operator==(const Chunk&) const = default;
};
struct Stage {
  std::vector<Chunk> chunks;  // in order; one forward of the stage runs them all
  bool operator==(const Stage&) const = default;
};
struct Branch {
  ModuleLayout grid;
  std::vector<Stage> stages;            // pp · vpp
  int microbatches = 1;                 // work items per lane and step
  bool folded = false;                  // fold()
  std::vector<int> rank_of_stage = {};  // by stage: index along the pipeline
  int lanes() const { return folded ? 1 : grid.dp(); }
  int work_items() const { return microbatches * lanes() * grid.cp; }
  // A rank's place in the grid, t + tp·(c + cp·(d + dp·p)); negative: it has none.
  int place_of(Rank rank) const {
    const int place = static_cast<int>(rank.value) - grid.first_rank;
    return place < grid.ranks ? place : -1;
  }
  int stage_ranks() const { return grid.ranks / grid.pp; }
  // Its index along the pipeline; -1: it has none.
  int index_of(Rank rank) const {
    const int place = place_of(rank);
    return place < 0 ? -1 : place / stage_ranks();
  }
  bool holds(Rank rank, std::size_t stage) const { return index_of(rank) == rank_of_stage[stage]; }
};
struct Plan {
  std::vector<Branch> branches;  // in the model's order; data flows from earlier to later ones
  std::size_t language = 0;      // the branch that holds the language module
};

// Why the layout is not legal for this scenario, or nothing. Names the nearest legal values. Checks
// grids, tiling of the world, divisibility, the batch, and what no runner of this version supports.
std::optional<Infeasible> check_layout(const Scenario& scenario, const Layout& layout);
// The scenario's layout, checked. InputError when there is none or it is illegal.
const Layout& require_layout(const Scenario& scenario);
// Why the executor cannot run what the simulator can ("simulation only"), or nothing.
std::optional<Infeasible> check_runnable(const Scenario& scenario, const Layout& layout);

// Whether `blocks` say how the layout's stages are split, or there is nothing to split.
bool is_split(const Model& model, const Layout& layout);
// Stages that the layout does not split are split so that the dearest is as cheap as can be.
// Without costs: FLOPs of a typical batch are taken for them.
Plan make_plan(const Scenario& scenario, const Layout& layout, const LayerCosts& costs = {});
// The layout with the plan's split as its `blocks`: what travels with a run, so that nobody plans
// another.
Layout with_blocks(Layout layout, const Plan& plan);

// Work items a step of an encoder's branch on `grid`: one that shares the ranks of the language
// module may take several microbatches at once.
int encoder_works(const Layout& layout, const ModuleLayout& grid, const ModuleLayout& language);

// Neighbours that compute together: the tensor-, context- and expert-parallel ranks of one sequence.
int cell_ranks(const ModuleLayout& grid);

// The plan of one rank per pipeline stage (tensor, context and lane index 0), which stands for all
// that do the same at the same time; its batch is one lane's. Groups keep their true members, so
// that collectives are priced over them; ranks that are stood for get no ops. Why not, or the plan:
// one pipeline only, whose lanes and contexts must have equal work.
std::variant<Plan, Infeasible> fold(const Scenario& scenario, const Layout& layout, Plan plan);
// The batch of a folded plan: the samples of lane 0.
Batch fold(const Batch& batch, const Layout& layout);

}  // namespace polyphony
