// Ranking of the candidates of a Contest, and the gap to what may still be faster.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/sweep/contest.h"

namespace polyphony::sim {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

bool Contest::fits(const Candidate& c) const {
  const Bytes limit = question_.scenario.memory_limit();
  return limit.value == 0 || c.figures.needed_memory() <= limit;
}

std::vector<std::size_t> Contest::fitting() const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (!standings_[i].waiting && !standings_[i].refused && candidates_[i].why_not.empty() &&
        fits(candidates_[i]))
      found.push_back(i);
  return found;
}

std::vector<std::size_t> Contest::fitting(Placement placement) const {
  std::vector<std::size_t> found = fitting();
  std::erase_if(found, [&](std::size_t i) { return candidates_[i].layout.placement != placement; });
  return found;
}

// Compares expected step times. For an estimated candidate, that is its estimate times the mean
// ratio of simulation to estimate of the simulated candidates with the same placement.
std::function<bool(std::size_t, std::size_t)> Contest::better() const {
  std::map<Placement, Ratio> over;
  for (const std::size_t i : fitting()) {
    const Candidate& c = candidates_[i];
    if (!c.simulated) continue;
    over[c.layout.placement].sum += c.figures.step / c.estimate;
    ++over[c.layout.placement].count;
  }
  const auto expected = [this, over](const Candidate& c) {
    const auto ratio = over.find(c.layout.placement);
    if (c.simulated || ratio == over.end()) return c.figures.step;
    return c.figures.step * (ratio->second.sum / ratio->second.count);
  };
  return [this, expected](std::size_t a, std::size_t b) {
    const Candidate &one = candidates_[a], &other = candidates_[b];
    const Seconds first = expected(one), second = expected(other);
    if (first != second) return first < second;
    if (one.simulated != other.simulated) return one.simulated;
    return simpler(one.layout, other.layout);
  };
}

std::vector<std::size_t> Contest::ranking(Placement placement) const {
  std::vector<std::size_t> order = fitting(placement);
  std::sort(order.begin(), order.end(), better());
  return order;
}

std::vector<std::size_t> Contest::ranking() const {
  std::vector<std::size_t> order = fitting();
  std::sort(order.begin(), order.end(), better());
  return order;
}

Seconds Contest::best(Placement placement) const {
  const std::vector<std::size_t> of = fitting(placement);
  const auto first = std::min_element(of.begin(), of.end(), better());
  return first == of.end() ? Seconds(kInfinite) : candidates_[*first].figures.step;
}

double Contest::gap(Placement placement, const std::map<Placement, Seconds>& rest) const {
  const double known = best(placement).count();
  double least = kInfinite;
  if (const auto left = rest.find(placement); left != rest.end()) least = left->second.count();
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (standings_[i].waiting && candidates_[i].layout.placement == placement)
      least = std::min(least, candidates_[i].bound.step.count());
  return std::isfinite(known) ? std::max(0.0, (known - std::min(known, least)) / known) : 0;
}

}  // namespace polyphony::sim
