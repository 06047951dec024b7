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
// The ranks of a folded branch that have ops: of every `period` lanes the first `lanes`, of those the
// first `contexts`, of those every stride-th tensor-parallel one. No lanes: all ranks have.
struct Kept {
  int lanes = 0, period = 0, contexts = 0, stride = 1;
  bool operator==(const Kept&) const = default;
};
struct Branch {
  ModuleLayout grid;
  std::vector<Stage> stages;            // pp · vpp
  int microbatches = 1;                 // work items per lane and step
  std::vector<int> rank_of_stage = {};  // by stage: index along the pipeline
  Kept kept = {};
  bool folded() const { return kept.lanes > 0; }
  // That have works; their indices along the lanes, and back.
  int lanes() const { return folded() ? grid.dp() / kept.period * kept.lanes : grid.dp(); }
  int lane_at(int index) const {
    return folded() ? index / kept.lanes * kept.period + index % kept.lanes : index;
  }
  int lane_index(int lane) const {
    return folded() ? lane / kept.period * kept.lanes + lane % kept.period : lane;
  }
  // Whether the rank at `place` of the grid has ops.
  bool keeps(int place) const {
    if (!folded()) return true;
    const int t = place % grid.tp, c = place / grid.tp % grid.cp,
              d = place / (grid.tp * grid.cp) % grid.dp();
    return t % kept.stride == 0 && c < kept.contexts && d % kept.period < kept.lanes;
  }
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
  int alike = 1;                 // folded: sets of lanes that do the same, of which one is kept
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

// The plan of some ranks, which stand for all that do the same at the same time; its batch is what
// their lanes work on. Groups keep their true members, so that collectives are priced over them;
// ranks that are stood for get no ops.
//   lanes     all samples are equal: lanes that no link joins to others do the same. Kept are those of
//             the first of `alike` equal sets
//   tensor    one rank of those that have the same place in every grid on their ranks. Of what its
//             group sends or takes over an edge it does the slowest part (lower_crossings.cpp)
//   contexts  all, but of a text model whose tokens are dealt so that they are alike
// The same step as unfolded to rounding, and its worst memory, where nodes hold whole sets; where sets
// lie differently in nodes, the first one's place counts. Links that several sets share are not summed.
// Encoders on the ranks of a pipeline: a kept rank encodes for the kept lanes, in truth for others that
// do the same but may be farther away: good to 0.5 % of the step (tests/shared/plan/fold_layouts_test.cpp).
struct Folded {
  Plan plan;
  Batch batch;
};
// Infeasible, with the reason: samples or ranks differ, or no two ranks do the same.
std::variant<Folded, Infeasible> fold(const Scenario& scenario, const Layout& layout, Plan plan,
                                      const Batch& batch);

}  // namespace polyphony
