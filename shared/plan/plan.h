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
#include <vector>

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
// Which part of a folded branch is kept (fold() in shared/lower/fold.h): which of its data-parallel
// lanes have works, and which of its ranks have ops. lanes == 0: the branch is not folded, all of
// its lanes have works, all of its ranks have ops, and the other fields have no meaning.
struct Kept {
  // The lanes of the grid are numbered in periods of `period` lanes: all lanes of one pipeline
  // stage. That is dp; for an encoder that runs on every rank of the language module's pipeline,
  // dp / (that pipeline's pp), so that each stage of that pipeline has a period of its own.
  // The first `lanes` lanes of every period have works.
  int lanes = 0, period = 0;
  // Of these lanes, the `span` lanes first, first + 1, … of the period have ops. Lane i of the
  // period is represented by lane first + i % span, which does the same.
  int first = 0, span = 1;
  // The context-parallel ranks 0 to contexts - 1 of these lanes have ops: one, or all cp.
  int contexts = 1;
  // The tensor-parallel ranks offset, offset + stride, … have ops. Each represents `stride` ranks.
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
  // Returns the number of lanes that have works. lane_at() converts an index among these lanes to a
  // lane of the grid, and lane_index() the other way around.
  int lanes() const { return folded() ? grid.dp() / kept.period * kept.lanes : grid.dp(); }
  int lane_at(int index) const {
    return folded() ? index / kept.lanes * kept.period + index % kept.lanes : index;
  }
  int lane_index(int lane) const {
    return folded() ? lane / kept.period * kept.lanes + lane % kept.period : lane;
  }
  // Returns the index of the lane whose ops represent those of the lane at `index`.
  int represented_by(int index) const {
    const int i = folded() ? index % kept.lanes : 0;
    return folded() ? index - i + kept.first + i % kept.span : index;
  }
  // Returns whether the rank at `place` of the grid (see place_of()) has ops.
  bool has_ops(int place) const {
    if (!folded()) return true;
    const int context = place / grid.tp % grid.cp, lane = place / (grid.tp * grid.cp) % grid.dp();
    return place % grid.tp % kept.stride == kept.offset && lane % kept.period < kept.lanes &&
           context < kept.contexts && represented_by(lane_index(lane)) == lane_index(lane);
  }
  // Returns the number of works of the branch in a step: one per microbatch, lane that has works,
  // and context-parallel rank.
  int count_works() const { return microbatches * lanes() * grid.cp; }
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

// Returns how long a message of `sent` bytes delays the stages at its two ends, in seconds.
//   `from`, `to`  indices along the branch's pipeline (0 to pp - 1) of the rank that holds the
//                 earlier stage and of the one that holds the later stage
//   `returned`    the later stage sends gradients of the same size back
using HopTimes =
    std::function<Hop(const ModuleLayout& grid, int from, int to, Bytes sent, bool returned)>;
// What a split into stages is based on, where the layout does not give one. A layout whose
// `balance` is `unaware` uses forward times alone (shared/plan/partition.h). If `layers` is empty,
// the forward and backward FLOPs of each layer over a typical batch, at 1 FLOP/s, replace its
// times, and the other fields are not read.
struct Splitting {
  LayerCosts layers = {};  // seconds
  HopTimes hop = {};       // absent: no waiting times for messages
  // Returns the bytes by which the rank of `stage` exceeds its memory if the branch that begins
  // with module `first` is split into `blocks`. Absent: every split fits.
  std::function<double(ModuleId first, const std::vector<int>& blocks, int stage)> lacks = {};
  // By ModuleId: item costs in seconds, for planner entrain where none are stated. Empty: FLOPs, at
  // 1 FLOP/s.
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

// Returns the number of ranks of a cell: the ranks that start a compute op together, because its
// tensor-, context- and expert-parallel collectives join them. A cell is the smallest block of
// consecutive ranks of a stage that contains whole groups of all three kinds. Without experts, that
// is one data-parallel lane (tp · cp ranks); expert groups that are larger join several lanes.
int cell_ranks(const ModuleLayout& grid);

}  // namespace polyphony
