// The search space: every legal combination of the lists in Scenario::search. Absent lists are
// filled with the values that model and cluster allow. The space is divided into parts, because it
// is often too large to be visited as a whole:
//   division   a placement, and the ranks of each module with a grid of its own
//   grid       one module on its ranks: all fields of ModuleLayout
//   drive      what the language module's pipeline runs: schedule, microbatches,
//              encoder_microbatches, encoder order, bridge
//
// Values of absent lists:
//   placement   all; mixed only if more than two modules have grids of their own
//   ranks       non-colocated: powers of two, or whole nodes if there are several; the language
//               module has the rest. Encoders lie before it, modules that it feeds after it.
//   tp          powers of two that divide a domain (larger ones only in layouts written by hand)
//   cp          powers of two up to 64
//   pp          divisors of the remaining ranks, up to 64, where pp or the resulting dp is a power
//               of two; 1 for an encoder on the language module's ranks
//   vpp         of the language module: 2 for V-shaped schedules; 2, 3, 4, … 16 for interleaved; of
//               other modules: 1
//   ep          powers of two and the number of experts; expert_tp is tp, or 1 under sequence
//               parallelism
//   sp shard recompute    all
//   schedule    all that are listed (Schedule::listed); climbs try the others
//   tp_pieces   1. Other values are tried only if they are listed, because profiles know
//               the efficiency of small GEMMs only through gemm_half_size.
//   cp_attention    of the language module: all. In a space of more than 30,000 combinations
//               (kSmallSpace in sim/sweep/sweep.cpp) a sweep lists all-gather alone, and a Lister
//               with choose_attention (shared/search/shortlist.h) replaces it, on each grid, by the
//               kind whose ranks have the least to do.
//   microbatch  powers of two, up to a lane's share of the batch
//   encoder_microbatches    colocated before a pipeline: powers of two up to 64
//   encoder_order    in-turn
//   shard_ranks tokens spread bridge    the value that is usually best: the whole group, zigzag
//               (balanced if the mask is not causal), samples, sharded. A sweep varies these around
//               the best layouts, as well as the encoder order, how far encoders run ahead, splits
//               into stages and ranges of recomputed blocks (sim/sweep/contest.h).
//
// Each layout appears once: a field without effect on a grid (sp with tp 1, a schedule with pp 1)
// has one value there. All ranks of the cluster are used. The order of the lists changes the order
// of layouts, and nothing else.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "shared/model/layout.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

// Combinations refused for one reason. Numbers inside the reason may differ; `example` is the
// first.
struct Rejection {
  Placement placement = Placement::homogeneous;
  std::string example;
  std::int64_t count = 0;
  bool operator==(const Rejection&) const = default;
};

// Rejections by reason, in order of first appearance.
class Rejections {
 public:
  void add(Placement placement, const std::string& reason, std::int64_t count = 1);
  void add(const Rejection& other) { add(other.placement, other.example, other.count); }
  const std::vector<Rejection>& all() const { return all_; }

 private:
  std::vector<Rejection> all_;
  std::map<std::pair<Placement, std::string>, std::size_t> known_;
};

struct RankRange {
  int first = 0, count = 0;
  auto operator<=>(const RankRange&) const = default;
};
struct Division {
  Placement placement = Placement::homogeneous;
  std::vector<RankRange> ranks;  // by Space::owners()
  auto operator<=>(const Division&) const = default;
};
struct Drive {
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  int microbatches = 1;
  int encoder_microbatches = 0;
  EncoderOrder encoder_order = EncoderOrder::in_turn;
  Bridge bridge = Bridge::sharded;
};

class Space {
 public:
  // The scenario must outlive it.
  explicit Space(const Scenario& scenario);

  const std::vector<ModuleId>& owners() const { return owners_; }  // modules with a grid
  std::size_t language() const { return language_; }               // its index among owners()
  // Returns whether the division is homogeneous, so that the language module's grid is that of all.
  static bool one_grid(const Division& division) {
    return division.placement == Placement::homogeneous;
  }

  // Returns the divisions of the cluster's ranks.
  std::vector<Division> divisions(Rejections& rejections) const;
  // Returns the grids of one module that are legal by themselves; whether they are legal together
  // is decided by check_layout().
  std::vector<ModuleLayout> grids(const Division& division, std::size_t owner,
                                  Rejections& rejections) const;
  // Returns the drives, ordered by schedule, then the smallest microbatch first.
  std::vector<Drive> drives(const Division& division, const ModuleLayout& language,
                            Rejections& rejections) const;
  // Returns the layout of a combination. `grids` are by owner; if homogeneous, only the language
  // module's is read.
  Layout assemble(const Division& division, const std::vector<ModuleLayout>& grids,
                  const Drive& drive) const;
  // Returns whether the lists of the search allow the layout. For callers that change a layout.
  bool allows(const Layout& layout) const;

 private:
  bool shares_language_ranks(const Division& division, std::size_t owner) const;
  std::vector<int> encoder_parts(bool pipelined, bool flushes, int microbatches) const;
  void divide(Placement placement, std::size_t owner, int first, int left,
              std::vector<RankRange>& ranks, std::vector<Division>& found,
              Rejections& rejections) const;

  const Scenario& scenario_;
  Search search_;
  std::vector<ModuleId> owners_;
  std::size_t language_ = 0;
};

// Returns the same layout with fields that have no effect on its grids set to their defaults: sp
// with tp 1, a shard group of all ranks given as a number, a range of all blocks, the schedule of a
// pipeline with one stage. Layouts that do the same are then equal, except for `blocks` that state
// the plan's own split.
Layout at_rest(const Scenario& scenario, Layout layout);

// Returns every legal layout of the space. For small spaces only.
std::vector<Layout> candidates(const Scenario& scenario,
                               std::vector<Rejection>* rejected = nullptr);

}  // namespace polyphony
