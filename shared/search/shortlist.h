// The most promising layouts of a Space, by closed form: what a sweep looks at further.
//   A unit is the part of a division whose language module has one tp, cp and pp: units are listed
//   one by one, by any number of processes, and each gives its best few, so that what is estimated
//   next is of many kinds. Candidates whose bound is above the limit of their placement are left out:
//   something better is known. Encoders with grids of their own are not combined one by one with all
//   language grids: for each number of work items the quickest few along their front of time and
//   memory are (all, where the space is small). Same answer for any order of the search's lists.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "shared/screen/bound.h"
#include "shared/search/space.h"

namespace polyphony {

struct Listed {
  Layout layout;
  Bound bound;
};
// The order of a shortlist: by bound, then the simplest first.
bool listed_before(const Listed& a, const Listed& b);
// Total orders of layouts and grids, the simpler before the other.
bool simpler(const Layout& a, const Layout& b);
bool simpler(const ModuleLayout& a, const ModuleLayout& b);
// One pipeline stage on each of these ranks, nothing cut.
ModuleLayout plain(const RankRange& ranks);

struct Unit {
  std::size_t division = 0;        // of Lister::divisions()
  std::size_t begin = 0, end = 0;  // of its language grids
};

struct Shortlist {
  std::vector<Listed> best;  // in order
  // The least bound of what fits and is not among them: infinite when all is.
  Seconds rest{std::numeric_limits<double>::infinity()};
  std::int64_t considered = 0;  // combinations, those left out by their parts' bounds included
  std::int64_t legal = 0;       // of those that were looked at one by one
  std::int64_t too_large = 0, beaten = 0;
  bool fits = false;             // one that was looked at
  std::optional<Listed> misfit;  // the one that needs least, where none fits; its footprint alone
  // Too large split by time, and perhaps not with another split of stages; in order.
  std::vector<Listed> tight;
  std::vector<Rejection> rejections;
};

struct ListerOptions {
  std::size_t keep = 24;     // of a unit
  std::size_t encoders = 4;  // of a front; 0: all, without regard to their front
  std::size_t tight = 1;     // of a unit's tight ones
  std::map<Placement, Seconds> limits{};
};

class Lister {
 public:
  // All must outlive it. `choose_ways`: the space has all-gather for every context-parallel grid; each grid
  // takes the way to attend whose ranks have least to do, and ring where that alone fits.
  Lister(const Scenario& scenario, const Space& space, const HardwareProfile& profile,
         const Batch& batch, bool choose_ways = false);

  const std::vector<Division>& divisions() const { return divisions_; }
  const std::vector<Unit>& units() const { return units_; }
  const std::vector<Rejection>& rejections() const { return rejections_.all(); }
  // Combinations of grids and drives; a double, because products of lists have no limit.
  double combinations() const { return combinations_; }

  Shortlist list(const Unit& unit, const ListerOptions& options);

 private:
  // An encoder's grids that are worth combining, by all that they depend on, whoever asks first:
  // division, owner, works and their order, the language module's pp, pp and vpp of the encoder whose ranks
  // it shares.
  using FrontKey = std::tuple<std::size_t, std::size_t, int, int, EncoderOrder, int, int, int>;
  struct Grids {
    std::vector<std::vector<ModuleLayout>> by_owner;
  };
  struct Encoder {
    ModuleLayout grid;
    PartBound part;
  };
  // What the ranks of the modules chosen so far need at least.
  struct Least {
    Seconds step{};
    Bytes memory{};
  };
  enum class Fate : std::uint8_t { open, too_large, beaten };
  // The unit in hand.
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
  void choose_way(const Division& division, ModuleLayout& grid);
  bool allowed(Layout layout) const;
  // Without any recomputation that the lists could do without.
  Layout at_ease(const Layout& layout) const;
  void recompute_less(Task& task, const Layout& layout);

  const Scenario& scenario_;
  const Space& space_;
  Screen screen_;
  std::vector<Division> divisions_;
  std::vector<Grids> grids_;  // by division
  std::vector<Unit> units_;
  Rejections rejections_;
  double combinations_ = 0;
  std::map<FrontKey, std::vector<Encoder>> fronts_;
  const bool choose_ways_;
  // Of a grid: tp, cp, ep, expert_tp, sp, tp_pieces, recompute, how tokens are dealt, first rank.
  using WayKey = std::tuple<int, int, int, int, bool, int, Recompute, TokenAssignment, int>;
  std::map<WayKey, ContextAttention> ways_;
};

}  // namespace polyphony
