// The Plan: which layers each pipeline stage holds, and which ranks run it. It is made from a
// layout, once per (model, layout).
//   A branch is one pipeline: one module with the projectors that read from it, or all modules of a
//   homogeneous layout. A branch has pp ranks along its pipeline, and stage s runs on the one with
//   index rank_of_stage[s], where the schedule places it. With more stages than ranks, the stages
//   of one rank are its virtual stages.
//
//   A stage is a list of chunks. A chunk is a range of layers of one module. A module is cut into
//   chunks where an edge enters or leaves between layers, and at every block where gradients or
//   parameters are sharded (shared/plan/cut_by_blocks.h). The data flow between chunks is described
//   in shared/plan/links.h.
#pragma once

#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "shared/error.h"
#include "shared/plan/partition.h"
#include "shared/planner/planner_costs.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

struct Chunk {
  ModuleId module;
  LayerRange layers;
  bool operator==(const Chunk&) const = default;
};
struct Stage {
  std::vector<Chunk> chunks;  // in order; one forward action of the stage runs all of them
  bool operator==(const Stage&) const = default;
};
// For a folded branch (see fold() below): which lanes have work items, and which ranks have ops.
struct Kept {
  // Work items: the first `lanes` of every `period` lanes. 0 lanes: the branch is not folded.
  int lanes = 0, period = 0;
  // Ops: of these lanes, `span` lanes from `first` on. Lane i does the same as lane first + i %
  // span.
  int first = 0, span = 1;
  // Ops: this many context-parallel ranks, the first ones.
  int contexts = 1;
  // Ops: every stride-th tensor-parallel rank, from `offset` on.
  int stride = 1, offset = 0;
  bool operator==(const Kept&) const = default;
};
struct Branch {
  ModuleLayout grid;
  std::vector<Stage> stages;            // pp · vpp
  int microbatches = 1;                 // per data-parallel lane and step
  std::vector<int> rank_of_stage = {};  // by stage: index of its rank along the pipeline
  Kept kept = {};
  ModuleCosts costs = {};  // for the layout's planner
  bool folded() const { return kept.lanes > 0; }
  // Returns the number of lanes that have work items; lane_at() converts an index among them to a
  // lane of the grid, lane_index() a lane to its index.
  int lanes() const { return folded() ? grid.dp() / kept.period * kept.lanes : grid.dp(); }
  int lane_at(int index) const {
    return folded() ? index / kept.lanes * kept.period + index % kept.lanes : index;
  }
  int lane_index(int lane) const {
    return folded() ? lane / kept.period * kept.lanes + lane % kept.period : lane;
  }
  // Returns the index of the lane whose ops represent those of the lane at `index`.
  int stand_in(int index) const {
    const int i = folded() ? index % kept.lanes : 0;
    return folded() ? index - i + kept.first + i % kept.span : index;
  }
  bool keeps(int index, int context) const {
    return !folded() || (context < kept.contexts && stand_in(index) == index);
  }
  // Returns whether the rank at `place` of the grid has ops.
  bool keeps(int place) const {
    if (!folded()) return true;
    const int lane = place / (grid.tp * grid.cp) % grid.dp();
    return place % grid.tp % kept.stride == kept.offset && lane % kept.period < kept.lanes &&
           keeps(lane_index(lane), place / grid.tp % grid.cp);
  }
  int work_items() const { return microbatches * lanes() * grid.cp; }
  // Returns the rank's place in the grid, t + tp·(c + cp·(d + dp·p)); negative if the rank is not
  // in the grid.
  int place_of(Rank rank) const {
    const int place = static_cast<int>(rank.value) - grid.first_rank;
    return place < grid.ranks ? place : -1;
  }
  int stage_ranks() const { return grid.ranks / grid.pp; }
  // Returns the rank's index along the pipeline; -1 if the rank is not in the grid.
  int index_of(Rank rank) const {
    const int place = place_of(rank);
    return place < 0 ? -1 : place / stage_ranks();
  }
  bool holds(Rank rank, std::size_t stage) const { return index_of(rank) == rank_of_stage[stage]; }
};
struct Plan {
  std::vector<Branch> branches;  // in the model's order; data flows from earlier to later ones
  std::size_t language = 0;      // index of the branch that holds the language module
  int alike = 1;                 // folded: number of equal sets of lanes, of which one is kept
};

// Returns why the layout is not legal for this scenario, or nothing if it is legal. The reason
// names the nearest legal values. Checks the grids, the tiling of the world, divisibility, the
// global batch, and what neither simulator nor executor supports.
std::optional<Infeasible> check_layout(const Scenario& scenario, const Layout& layout);
// Returns the scenario's layout. Throws InputError if there is none or if it is not legal.
const Layout& require_layout(const Scenario& scenario);
// Returns why the executor cannot run a layout that the simulator can ("simulation only"), or
// nothing.
std::optional<Infeasible> check_runnable(const Scenario& scenario, const Layout& layout);

// Returns the waiting times between the stages at indices `from` and `to` along a pipeline, if one
// sends the other `sent` bytes. `returned`: their gradients are sent back.
using HopTimes =
    std::function<Hop(const ModuleLayout& grid, int from, int to, Bytes sent, bool returned)>;
// What a split into stages is based on, where the layout does not give one. A layout whose
// `balance` is `unaware` uses forward times alone (shared/plan/partition.h).
struct Splitting {
  LayerCosts layers = {};  // empty: FLOPs of a typical batch, at 1 FLOP/s
  HopTimes hop = {};       // absent: no waiting times for messages
  // Returns the bytes by which the rank of `stage` exceeds its memory if the branch that begins
  // with module `first` is split into `blocks`. Absent: every split fits.
  std::function<double(ModuleId first, const std::vector<int>& blocks, int stage)> lacks = {};
  // By ModuleId: item costs for the planner, where none are stated. Empty: FLOPs, at 1 FLOP/s.
  std::vector<ItemCost> items = {};
};

// Returns whether the layout is complete, so that no profile is needed to plan it: `blocks` state
// how stages are split and, with a planner, the scenario states the costs that it balances
// (Scenario::planner_costs). Also true where there is nothing to split or balance.
bool is_split(const Scenario& scenario, const Layout& layout);
// Returns the plan of a layout. Where the layout does not give the split into stages, stages are
// split so that the most expensive rank costs as little as possible. Stage costs (planner dip) are
// copied from the scenario, and absent otherwise: shared/split/balanced_plan.h fits them.
Plan make_plan(const Scenario& scenario, const Layout& layout, const Splitting& by = {});
// Returns the layout with the plan's split as its `blocks`.
Layout with_blocks(Layout layout, const Plan& plan);
// Makes the planned layout the scenario's own: with its blocks, and next to it the costs that its
// planner uses. A run starts from such a scenario, so that its split is never computed again.
void store_planned(const Layout& layout, const Plan& plan, Scenario& scenario);

// Returns the number of microbatches per step and lane of an encoder's branch on `grid`. Each may
// feed several microbatches of the language module.
int encoder_works(const Layout& layout, const ModuleLayout& grid, const ModuleLayout& language);

// Returns the number of consecutive ranks that compute together (a cell): the tensor-, context- and
// expert-parallel ranks of one sequence.
int cell_ranks(const ModuleLayout& grid);

// Folding: the plan of a few ranks that represent all ranks which do the same at the same time, and
// the batch that these ranks work on. Groups keep their true members, so that collectives are
// priced over all of them. Represented ranks get no ops; their messages are those of the rank that
// represents them.
//
// Which ranks are kept:
//   sets      Sets of lanes that no link joins to other lanes, where all samples are equal and
//             every lane has as many: the work items are those of the first of `alike` equal sets,
//             and the batch its samples. Otherwise all work items are kept.
//   lanes     One lane per branch and pipeline stage: the first. If lanes have unequal numbers of
//             samples, the last, which has the most. If cells span different numbers of nodes, the
//             lane whose cells span the most.
//   tensor    The first tensor-parallel rank, or the last one of the last lane. All ranks between
//             the common begin and end of lanes of all grids, if grids on the same ranks differ and
//             there are several context-parallel ranks, bridges have leaders, or nodes differ.
//   contexts  All, except for a text-only model whose tokens are assigned evenly.
//
// Folding is exact (the step up to rounding, the worst memory to the byte) if lanes have equal
// numbers of samples, a microbatch of an encoder feeds one microbatch, and groups lie in nodes in
// the same way. Otherwise the place of one lane, and what is near it, counts for all: the error of
// the step is mostly a ten-thousandth, seldom some percent, in either direction (shared/README.md).
// Links shared by ranks of several sets carry the flows of the kept ranks only.
struct Folded {
  Plan plan;
  Batch batch;
};
// What to do if the samples of lanes differ. alike: refuse to fold. busiest: the lane with the most
// work in the step represents all, which gives an estimate
// (tests/shared/plan/fold_random_test.cpp).
enum class Lanes : std::uint8_t { alike, busiest };
// Returns the folded plan; or Infeasible, with the reason, if samples or devices differ, an
// encoder's lanes lie across pipeline stages, or no two ranks do the same.
std::variant<Folded, Infeasible> fold(const Scenario& scenario, const Layout& layout, Plan plan,
                                      const Batch& batch, Lanes lanes = Lanes::alike);

}  // namespace polyphony
