// Contest::climb and its parts: local search from the best candidates.
#include <set>

#include "shared/check/check.h"
#include "shared/search/neighbours.h"
#include "shared/split/balanced_plan.h"
#include "sim/sweep/contest.h"

namespace polyphony::sim {
namespace {

// Smallest relative improvement for a step of a climb; smaller differences are rounding errors.
constexpr double kBetter = 1e-4;
constexpr int kMostSteps = 40;
// Neighbours that a step estimates even if that costs more than the budget: those of least bound.
constexpr std::size_t kLeastTried = 4;
// Blocks are moved between stages only up to this many stages; with more, there are too many pairs.
constexpr int kMostStagesToShift = 24;

}  // namespace

std::vector<std::size_t> Contest::better_neighbours(std::size_t of, const Layout& layout) {
  const Candidate& from = candidates_[of];
  std::vector<std::size_t> found;
  for (const Layout& next : neighbours(question_.scenario, layout)) {
    if (next.placement != from.layout.placement || !space_.allows(next)) continue;
    const Bytes capacity = screen_.room(next);
    if (capacity.value > 0 && screen_.footprint(next).memory > capacity) continue;
    const Bound bound = screen_.bound(next);
    if (bound.step.count() >= from.figures.step.count() * (1 - kBetter)) continue;
    found.push_back(position(next, bound));
  }
  return found;
}

// Returns those of the least bounds, if all would cost more than `ops`. A neighbour is expected to
// cost as much as the layout that it was made from: Programs of layouts that do not fold are a
// hundred times as large as others.
std::vector<std::size_t> Contest::affordable(std::vector<std::size_t> near, std::size_t from,
                                             std::int64_t ops) const {
  const auto each = std::max<std::int64_t>(1, candidates_[from].ops);
  const auto most = std::max<std::size_t>(kLeastTried, static_cast<std::size_t>(ops / each));
  if (near.size() <= most) return near;
  std::stable_sort(near.begin(), near.end(), [&](std::size_t a, std::size_t b) {
    return candidates_[a].bound.step < candidates_[b].bound.step;
  });
  near.resize(most);
  return near;
}

void Contest::climb_from(std::size_t start, std::int64_t& ops) {
  std::size_t at = start;
  bool split = false;  // blocks of stages are stated, and moved between stages
  for (int step = 0; step < kMostSteps && ops > 0 && !stopped(); ++step) {
    Layout layout = candidates_[at].layout;
    if (!split && standings_[at].replaced) layout = *standings_[at].replaced;
    if (split) {
      layout = with_blocks(layout, balanced_plan(question_.scenario, layout, question_.profile));
      if (check_layout(question_.scenario, layout)) return;
    }
    const std::vector<std::size_t> near =
        runnable(affordable(better_neighbours(at, layout), at, ops));
    ops -= std::max<std::int64_t>(1, estimate_all(near, "climbing"));
    std::size_t best = at;
    for (const std::size_t next : near) {
      const Candidate& c = candidates_[next];
      if (!c.why_not.empty() || !fits(c)) continue;
      const Seconds known = candidates_[best].figures.step;
      if (c.figures.step < known * (1 - kBetter) ||
          (best != at && c.figures.step == known && simpler(c.layout, candidates_[best].layout)))
        best = next;
    }
    if (best != at) {
      at = best;
      continue;
    }
    const ModuleLayout& language = layout.modules[space_.owners()[space_.language()].value];
    const int stages = language.pp * language.vpp;
    if (split || stages > kMostStagesToShift) return;
    split = true;
  }
}

void Contest::climb(Placement placement, std::size_t starts, double near, std::int64_t ops) {
  const std::vector<std::size_t> ranked = ranking(placement);
  if (ranked.empty()) return;
  std::set<Shape> shapes;
  std::vector<std::size_t> from;
  const double limit = candidates_[ranked.front()].figures.step.count() * (1 + near);
  for (const std::size_t at : ranked) {
    if (from.size() == starts || candidates_[at].figures.step.count() > limit) break;
    if (shapes.insert(std::get<Shape>(std::get<Family>(standings_[at].kind))).second)
      from.push_back(at);
  }
  for (const std::size_t at : from) climb_from(at, ops);
}

}  // namespace polyphony::sim
