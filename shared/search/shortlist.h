// Finds the most promising layouts of a Space by closed-form bounds. A sweep then estimates and
// simulates these.
//   A unit is the part of a division (see shared/search/space.h) whose language module has one tp,
//   cp and pp. Units are listed independently, on any number of threads. Each returns its best few
//   layouts, so that the layouts estimated next are diverse. Candidates whose bound exceeds the
//   limit of their placement are dropped, because a better layout is known.
//
//   Encoders with grids of their own are not combined with the language grids one by one. For each
//   number of works, only the fastest few grids along their Pareto front of time and memory are
//   used (all, if the space is small). The answer does not depend on the order of the search's
//   lists.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "shared/screen/bound.h"
#include "shared/search/layout_order.h"
#include "shared/search/space.h"

namespace polyphony {

struct Listed {
  Layout layout;
  Bound bound;
};
// Returns whether `a` comes before `b` in a shortlist: by bound, then the simplest first.
bool listed_before(const Listed& a, const Listed& b);
// Returns a grid with only data parallelism over these ranks.
ModuleLayout plain(const RankRange& ranks);

struct Unit {
  std::size_t division = 0;        // of Lister::divisions()
  std::size_t begin = 0, end = 0;  // range of its language grids
};

struct Shortlist {
  std::vector<Listed> best;  // in order
  // The least bound of the layouts that fit but are not in `best`; infinite if all are.
  Seconds rest{std::numeric_limits<double>::infinity()};
  std::int64_t considered = 0;  // combinations, including those dropped by the bounds of parts
  std::int64_t legal = 0;       // combinations that were checked one by one and are legal
  // Combinations that do not fit in memory, and combinations that are ruled out because a lower
  // bound of their step exceeds the limit. Groups whose parts alone decide this are counted whole,
  // unchecked: some members may be illegal, so that neither is a part of `legal`.
  std::int64_t too_large = 0, pruned = 0;
  bool fits = false;  // some layout that was checked fits in memory
  // Of the layouts that were checked and do not fit, the one that needs the least memory. Of its
  // bound, only the footprint is set.
  std::optional<Listed> smallest_too_large;
  // Layouts too large when split by time, but perhaps not with another split into stages; in order.
  std::vector<Listed> may_fit_if_resplit;
  std::vector<Rejection> rejections;
};

struct ListerOptions {
  std::size_t keep = 24;     // layouts kept per unit
  std::size_t encoders = 4;  // grids used of an encoder's front; 0: all grids, on the front or not
  std::size_t may_fit_if_resplit = 1;  // layouts of Shortlist::may_fit_if_resplit kept per unit
  std::map<Placement, Seconds> limits{};
};

class Lister {
 public:
  // All arguments must outlive it. `choose_attention`: the space has all-gather for every
  // context-parallel grid, and each grid uses the kind of context-parallel attention whose ranks
  // have the least to do, or ring if only that fits.
  Lister(const Scenario& scenario, const Space& space, const HardwareProfile& profile,
         const Batch& batch, bool choose_attention = false);

  const std::vector<Division>& divisions() const { return divisions_; }
  const std::vector<Unit>& units() const { return units_; }
  const std::vector<Rejection>& rejections() const { return rejections_.all(); }
  // Returns the number of combinations of grids and drives. A double, because products of lists may
  // exceed any integer.
  double combinations() const { return combinations_; }

  // Not for several threads at a time: it remembers what units have in common.
  Shortlist list(const Unit& unit, const ListerOptions& options);
  // Returns another lister of the same units, for another thread.
  std::unique_ptr<Lister> another() const;

 private:
  // The grids of an encoder that are worth combining, keyed by all that they depend on: division,
  // owner, works and their order, the language module's pp, and pp and vpp of the encoder
  // whose ranks it shares.
  using FrontKey = std::tuple<std::size_t, std::size_t, int, int, EncoderOrder, int, int, int>;
  struct Grids {
    std::vector<std::vector<ModuleLayout>> by_owner;
  };
  struct Encoder {
    ModuleLayout grid;
    PartBound part;
  };
  // Lower bounds for the ranks of the modules chosen so far.
  struct Least {
    Seconds step{};
    Bytes memory{};
  };
  enum class Fate : std::uint8_t { open, too_large, pruned };
  // The unit being listed.
  struct Task {
    const Unit& unit;
    const Division& division;
    const ListerOptions& options;
    Seconds limit;
    Shortlist list{};
    Rejections rejections{};
    std::vector<ModuleLayout> grids{};  // by owner, as chosen
  };
  const std::vector<Encoder>& front(const Task& task, std::size_t owner, const Drive& drive);
  Least of_language(const Task& task, const Drive& drive);
  Fate judge(const Least& least, std::int64_t combinations, Task& task) const;
  void combine(Task& task, const Drive& drive, std::size_t owner, const Least& least);
  void look(Task& task, Layout layout);
  bool fits(Task& task, Layout& layout);
  void choose_context_attention(const Division& division, ModuleLayout& grid);
  bool allowed(Layout layout) const;
  // Returns the layout without any recomputation that the lists allow to omit.
  Layout without_recompute(const Layout& layout) const;
  void recompute_less(Task& task, const Layout& layout);

  const Scenario& scenario_;
  const Space& space_;
  const HardwareProfile& profile_;
  const Batch& batch_;
  Screen screen_;
  std::vector<Division> divisions_;
  std::vector<Grids> grids_;  // by division
  std::vector<Unit> units_;
  Rejections rejections_;
  double combinations_ = 0;
  std::map<FrontKey, std::vector<Encoder>> fronts_;
  const bool choose_attention_;
  // Key of a grid: tp, cp, ep, expert_tp, sp, tp_pieces, recompute, how tokens are assigned, first
  // rank.
  using AttentionKey = std::tuple<int, int, int, int, bool, int, Recompute, TokenAssignment, int>;
  std::map<AttentionKey, ContextAttention> attentions_;
};

}  // namespace polyphony
