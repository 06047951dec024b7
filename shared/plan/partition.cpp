#include "shared/plan/partition.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "shared/error.h"

namespace polyphony {
namespace {

using Cost = std::int64_t;
constexpr Cost kNone = std::numeric_limits<Cost>::max();

// Costs are integers, so that equal splits compare equal in whatever order their sums are formed.
class Partition {
 public:
  // `hops`: hops_of(chain, stages).
  Partition(const Chain& chain, int stages, const std::vector<Hop>& hops)
      : chain_(chain),
        stages_(static_cast<std::size_t>(stages)),
        units_(chain.costs.size()),
        prefix_(units_ + 1, 0),
        ends_(stages_ * (units_ + 1)) {
    POLYPHONY_CHECK(stages >= 1 && stages_ <= units_, stages << " stages, " << units_ << " units");
    double total = 0, longest = 0;
    for (const double cost : chain.costs) {
      POLYPHONY_CHECK(cost >= 0, "a unit costs " << cost);
      total += cost;
    }
    for (const Hop& hop : hops)
      if (std::isfinite(hop.rows)) longest = std::max({longest, hop.rows, hop.gradients});
    // The scale is a power of two such that sums of squares fit in 63 bits.
    const double most = total + 2 * static_cast<double>(stages_) * longest;
    scale_ = most > 0 ? std::exp2(30 - std::ceil(std::log2(most))) : 0;
    for (const Hop& hop : hops)
      hops_.push_back(std::isfinite(hop.rows) ? Waits{whole(hop.rows), whole(hop.gradients)}
                                              : Waits{kNone / 4, 0});
    Cost largest = 0;  // of a unit
    for (std::size_t u = 0; u < units_; ++u) {
      const Cost cost = whole(chain.costs[u]);
      largest = std::max(largest, cost);
      prefix_[u + 1] = prefix_[u] + cost;
    }
    enough_ = prefix_[units_] / static_cast<Cost>(stages_) + 1 + largest + 2 * whole(longest);
  }

  std::vector<int> sizes() {
    const auto larger = [](Cost stage, Cost others) { return std::max(stage, others); };
    const auto squares = [](Cost stage, Cost others) { return stage * stage + others; };
    const Cost all = prefix_[units_] + 2 * enough_;
    Cost least = best(enough_, larger);
    for (Cost cap = enough_; least == kNone && cap < all;) least = best(cap *= 2, larger);
    if (least == kNone) return {};
    best(least, squares);
    std::vector<int> sizes;
    for (std::size_t s = 0, begin = 0; s < stages_; begin = ends_[at(s, begin)], ++s)
      sizes.push_back(static_cast<int>(ends_[at(s, begin)] - begin));
    return sizes;
  }

 private:
  std::size_t at(std::size_t stage, std::size_t unit) const { return stage * (units_ + 1) + unit; }
  Cost whole(double cost) const { return std::llround(cost * scale_); }

  // Returns the least value of `join` among all splits into stages that cost at most `cap`; kNone
  // if there is none. Stores where the stages end. join(stage, later stages) must increase in both
  // arguments.
  template <class Join>
  Cost best(Cost cap, Join join) {
    std::vector<Cost> after(units_ + 1, kNone), now;  // by begin of the later stages
    after[units_] = 0;
    for (std::size_t s = stages_; s-- > 0;) {
      now.assign(units_ + 1, kNone);
      const std::size_t last = units_ - (stages_ - 1 - s);
      for (std::size_t begin = s; begin < (s == 0 ? 1 : last); ++begin) {
        if (prefix_[begin] > cap * static_cast<Cost>(s)) break;
        if (prefix_[units_] - prefix_[begin] > cap * static_cast<Cost>(stages_ - s)) continue;
        const Cost before = (hops_.empty() ? 0 : hops_[at(s, begin)].rows) - prefix_[begin];
        const std::size_t to = chain_.lacks ? std::min(last, fits_to(s, begin)) : last;
        for (std::size_t end = begin + 1; end <= to; ++end) {
          Cost cost = before + prefix_[end];
          if (cost > cap || join(cost, 0) >= now[begin]) break;
          if (!hops_.empty()) cost += hops_[at(s + 1, end)].gradients;
          if (after[end] == kNone || cost > cap) continue;
          const Cost joined = join(cost, after[end]);
          if (joined >= now[begin]) continue;
          now[begin] = joined;
          ends_[at(s, begin)] = static_cast<std::uint32_t>(end);
        }
      }
      std::swap(now, after);
    }
    return after[0];
  }

  // Returns the last end of a stage that begins there and fits in memory; `begin` if none does.
  std::size_t fits_to(std::size_t stage, std::size_t begin) {
    if (known_.empty()) known_.resize(ends_.size(), kUnknown);
    std::uint32_t& known = known_[at(stage, begin)];
    if (known != kUnknown) return known;
    const auto lacks = [&](std::size_t end) {
      return chain_.lacks(around(stage, begin, end), static_cast<int>(stage)) > 0;
    };
    std::size_t fits = begin, fails = units_ - (stages_ - 1 - stage) + 1;
    if (stage + 1 == stages_)  // takes all remaining units
      fits = lacks(units_) ? begin : units_;
    else
      for (std::size_t end = begin + 1; fits + 1 < fails; end = (fits + fails) / 2)
        (lacks(end) ? fails : fits) = end;
    return known = static_cast<std::uint32_t>(fits);
  }

  // Returns the sizes of some split that contains this stage.
  std::vector<int> around(std::size_t stage, std::size_t begin, std::size_t end) const {
    std::vector<int> sizes(stages_, 1);
    if (stage > 0) sizes.front() += static_cast<int>(begin - stage);
    sizes[stage] = static_cast<int>(end - begin);
    if (stage + 1 < stages_) sizes.back() += static_cast<int>(units_ - end - (stages_ - 1 - stage));
    return sizes;
  }

  const Chain& chain_;
  std::size_t stages_, units_;
  std::vector<Cost> prefix_;
  std::vector<std::uint32_t> ends_;  // by stage and where it begins
  static constexpr std::uint32_t kUnknown = 0xFFFFFFFF;
  std::vector<std::uint32_t> known_;  // fits_to() of the same
  struct Waits {
    Cost rows = 0, gradients = 0;
  };
  std::vector<Waits> hops_;  // by stage and where it begins; empty: none
  double scale_ = 0;
  Cost enough_ = 0;  // some split has no stage that costs more, if all fit in memory
};

}  // namespace

std::vector<Hop> hops_of(const Chain& chain, std::size_t stages) {
  std::vector<Hop> hops;
  if (!chain.hop) return hops;
  const std::size_t units = chain.costs.size();
  hops.resize((stages + 1) * (units + 1));
  for (std::size_t s = 1; s < stages; ++s)
    for (std::size_t u = s; u < units; ++u)
      hops[s * (units + 1) + u] = chain.hop(static_cast<int>(s), static_cast<int>(u));
  return hops;
}

std::vector<int> partition_chain(const Chain& chain, int stages, const std::vector<Hop>& hops) {
  return Partition(chain, stages, hops).sizes();
}

std::vector<int> partition_chain(const Chain& chain, int stages) {
  return partition_chain(chain, stages, hops_of(chain, static_cast<std::size_t>(stages)));
}

}  // namespace polyphony
