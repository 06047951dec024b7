// From a layout to stages on ranks: which layers each pipeline stage holds, and which ranks run it.
// Made once per (model, layout).
//   A branch is one pipeline: one module with the projectors that read from it, or all modules when
//   homogeneous. Stage s runs on index rank_of_stage[s] of the pp ranks along its pipeline (more stages than
//   ranks: virtual stages), where its schedule places it. A stage is a list of chunks: layer ranges of one module,
//   cut where an edge enters or leaves between layers, and at every block where gradients or
//   parameters are divided (shared/plan/cut_by_blocks.h). What flows between chunks:
//   shared/plan/links.h.
#pragma once

#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "shared/error.h"
#include "shared/plan/partition.h"
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
// Which lanes of a folded branch have works, and which of its ranks have ops.
struct Kept {
  int lanes = 0,
      period = 0;  // works: the first `lanes` of every `period`; 0: the branch is not folded
  int first = 0,
      span = 1;      // ops: of those the lanes from `first` on; lane i is as first + i % span
  int contexts = 1;  // ops: the first
  int stride = 1, offset = 0;  // ops: every stride-th tensor-parallel rank from `offset` on
  bool operator==(const Kept&) const = default;
};
struct Branch {
  ModuleLayout grid;
  std::vector<Stage> stages;            // pp · vpp
  int microbatches = 1;                 // work items per lane and step
  std::vector<int> rank_of_stage = {};  // by stage: index along the pipeline
  Kept kept = {};
  bool folded() const { return kept.lanes > 0; }
  // That have works; their indices along all lanes, and back.
  int lanes() const { return folded() ? grid.dp() / kept.period * kept.lanes : grid.dp(); }
  int lane_at(int index) const {
    return folded() ? index / kept.lanes * kept.period + index % kept.lanes : index;
  }
  int lane_index(int lane) const {
    return folded() ? lane / kept.period * kept.lanes + lane % kept.period : lane;
  }
  // The index of the lane whose ops stand for one's.
  int stand_in(int index) const {
    const int i = folded() ? index % kept.lanes : 0;
    return folded() ? index - i + kept.first + i % kept.span : index;
  }
  bool keeps(int index, int context) const {
    return !folded() || (context < kept.contexts && stand_in(index) == index);
  }
  // Whether the rank at `place` of the grid has ops.
  bool keeps(int place) const {
    if (!folded()) return true;
    const int lane = place / (grid.tp * grid.cp) % grid.dp();
    return place % grid.tp % kept.stride == kept.offset && lane % kept.period < kept.lanes &&
           keeps(lane_index(lane), place / grid.tp % grid.cp);
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

// What two stages of a branch wait for, at these places along its pipeline, where one sends the other
// so many bytes; `returned`: and gets their gradients.
using HopTimes =
    std::function<Hop(const ModuleLayout& grid, int from, int to, Bytes sent, bool returned)>;
// What stages that the layout does not split are split by; a layout whose balance is unaware takes
// forward times alone (shared/plan/partition.h).
struct Splitting {
  LayerCosts layers = {};  // empty: FLOPs of a typical batch, at one a second
  HopTimes hop = {};       // absent: nobody waits
  // Bytes that the rank of `stage` lacks where the branch that begins with `first` is split so.
  // Absent: all fit.
  std::function<double(ModuleId first, const std::vector<int>& blocks, int stage)> lacks = {};
  // By ModuleId, what a planner weighs by where the layout does not say. Empty: FLOPs, at one a second.
  std::vector<ItemCost> items = {};
};

// Whether the layout leaves nothing for a profile to decide: `blocks` say how stages are split, and
// under a planner `item_cost` or `stage_costs` what it weighs by; or there is nothing to split or to weigh.
bool is_split(const Model& model, const Layout& layout);
// Stages that the layout does not split are split so that the dearest rank is as cheap as can be. Stage
// costs are the layout's or none: shared/split/balanced_plan.h fits them.
Plan make_plan(const Scenario& scenario, const Layout& layout, const Splitting& by = {});
// The layout with the plan's split as its `blocks`, and what its planner weighs by: what travels with a
// run, so that nobody plans another.
Layout with_blocks(Layout layout, const Plan& plan);

// Work items a step of an encoder's branch on `grid`: each may feed several microbatches.
int encoder_works(const Layout& layout, const ModuleLayout& grid, const ModuleLayout& language);

// Neighbours that compute together: the tensor-, context- and expert-parallel ranks of one sequence.
int cell_ranks(const ModuleLayout& grid);

// The plan of some ranks, which stand for all that do the same at the same time, and the batch that
// it works on. Groups keep their true members, so that collectives are priced over them; ranks that
// are stood for get no ops, their messages are those of the rank that stands for them.
//   sets      lanes that no link joins to others, where samples are equal and every lane has as many:
//             works are those of the first of `alike` equal sets, and its samples the batch; else all
//   lanes     one of each branch and pipeline stage: the first; the last, which has the most, where
//             lanes have unequal numbers of samples; that whose cells span the most nodes
//   tensor    the first rank, or the last of the last lane; where grids on the same ranks differ and
//             contexts are several, bridges have leaders or nodes are unlike, all ranks from where
//             lanes of all of them begin to where they end
//   contexts  all, but of a text model whose tokens are dealt so that they are alike
// Exact, the step to rounding and the worst memory to the byte, where lanes have equal numbers of samples,
// a work item of an encoder feeds one microbatch and groups lie alike in nodes. Otherwise one lane's
// place, and what is near it, count for all: a ten-thousandth of the step mostly, seldom some percent, to
// either side (shared/README.md). Links that ranks of several sets share carry the kept ones' flows alone.
struct Folded {
  Plan plan;
  Batch batch;
};
// Of lanes whose samples differ: none stands for another; or the one with the most to do in the step
// does for all, which is an estimate (tests/shared/plan/fold_random_test.cpp).
enum class Lanes : std::uint8_t { alike, busiest };
// Infeasible, with the reason: samples or devices differ, an encoder's lanes lie across pipeline stages, or
// no two ranks do the same.
std::variant<Folded, Infeasible> fold(const Scenario& scenario, const Layout& layout, Plan plan,
                                      const Batch& batch, Lanes lanes = Lanes::alike);

}  // namespace polyphony
