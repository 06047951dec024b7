// What a search may choose: every legal combination of Scenario::search, absent lists filled with
// what model and cluster allow. In parts, because the whole is often larger than can be visited:
//   division   a placement, and which ranks each module with a grid of its own has
//   grid       of one module on its ranks: all of ModuleLayout
//   drive      what the language module's pipeline does: schedule, microbatches, encoder work items,
//              bridge
// Absent lists:
//   placement   all; mixed where there are several encoders
//   ranks       non-colocated: powers of two, whole nodes where there are several, the language
//               module has the rest; encoders lie before it, what it feeds after it
//   tp          powers of two that divide a domain (beyond is left to layouts written by hand)
//   cp          powers of two up to 64
//   pp          divisors of the remaining ranks, up to 64, that are powers of two or leave a dp that
//               is one; an encoder on the language module's ranks has 1
//   vpp         of the language module: 2 for V-shaped schedules, 2, 3, 4, … 16 for interleaved;
//               of others 1
//   ep          powers of two and the number of experts; expert_tp tp, or 1 under sequence
//               parallelism
//   sp shard recompute schedule    all
//   tp_pieces   1: nobody's prices know how much less efficient smaller products are
//   cp_attention    of the language module: all; a large space has all-gather (sim/sweep/sweep.h)
//   microbatch  powers of two, up to a lane's share of the batch
//   encoder_microbatches    colocated before a pipeline: powers of two up to 64
//   encoder_order    in-turn
//   shard_ranks tokens spread bridge    what is best as a rule (the whole group, zigzag, samples,
//               sharded); a sweep varies them, the encoder order, how far encoders run ahead, splits
//               into stages and ranges of recomputed blocks round the best (sim/sweep/contest.h)
// Equal layouts come once: what has no meaning on a grid (sp with tp 1, a schedule with pp 1) has
// one value there. All ranks of the cluster are used. The order of lists changes the order of
// layouts, and nothing else.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "shared/model/layout.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

// Combinations refused for one reason; numbers inside the reason may differ, `example` is the
// first.
struct Rejection {
  Placement placement = Placement::homogeneous;
  std::string example;
  std::int64_t count = 0;
  bool operator==(const Rejection&) const = default;
};

// By reason, in order of first appearance.
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
  std::size_t language() const { return language_; }               // its place among them
  // A module's grid stands for all where the division is homogeneous: the language module's.
  static bool one_grid(const Division& division) {
    return division.placement == Placement::homogeneous;
  }

  std::vector<Division> divisions(Rejections& rejections) const;
  // Legal by themselves; together, check_layout() is the judge.
  std::vector<ModuleLayout> grids(const Division& division, std::size_t owner,
                                  Rejections& rejections) const;
  // By schedule, the smallest microbatch first.
  std::vector<Drive> drives(const Division& division, const ModuleLayout& language,
                            Rejections& rejections) const;
  // `grids` by owner; homogeneous: the language module's alone is read.
  Layout assemble(const Division& division, const std::vector<ModuleLayout>& grids,
                  const Drive& drive) const;
  // Whether no list of the search forbids it: for those who change a layout.
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

// The same layout with what has no meaning on its grids at rest: sp with tp 1, a group of all shard
// ranks by number, a range of all blocks, a pipeline's schedule with one stage. Layouts that do the
// same are then equal, but for `blocks` that say what the plan would.
Layout at_rest(const Scenario& scenario, Layout layout);

// Every legal layout of the space, one after another: for spaces that are small.
std::vector<Layout> candidates(const Scenario& scenario,
                               std::vector<Rejection>* rejected = nullptr);

}  // namespace polyphony
