#include "shared/planner/memory_choice.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace polyphony {
namespace {

constexpr int kSteps = 200;  // of the prices

// A (stage, work) on a rank: in flight at its forwards [first, last) of the rank.
struct Held {
  std::size_t branch = 0, at = 0;
  std::size_t first = 0, last = 0;
  std::vector<double> seconds, bytes;  // by way
};

class RankChoice {
 public:
  RankChoice(std::vector<Held> held, std::size_t forwards, double room)
      : held_(std::move(held)), forwards_(forwards), room_(room) {}

  // False: not even the leanest ways fit.
  bool run() {
    std::vector<int> lean(held_.size());
    for (std::size_t h = 0; h < held_.size(); ++h)
      lean[h] = static_cast<int>(std::min_element(held_[h].bytes.begin(), held_[h].bytes.end()) -
                                 held_[h].bytes.begin());
    if (!fits(lean)) return false;
    lean_ = lean;
    best_ = mended(lean);
    seconds_ = sum(best_);
    bound_ = 0;
    for (const Held& held : held_)
      bound_ += *std::min_element(held.seconds.begin(), held.seconds.end());
    std::vector<double> prices(forwards_, 0.0);
    double stretch = 1;
    for (int step = 0; step < kSteps && seconds_ > bound_ * (1 + 1e-9); ++step) {
      const std::vector<int> relaxed = cheapest(prices);
      const std::vector<double> used = usage(relaxed);
      double value = sum(relaxed), squares = 0;
      for (std::size_t f = 0; f < forwards_; ++f) {
        value += prices[f] * (used[f] - room_);
        const double over = used[f] - room_;
        if (over > 0 || prices[f] > 0) squares += over * over;
      }
      if (value > bound_)
        bound_ = value;
      else
        stretch *= 0.95;
      if (std::vector<int> mine = mended(relaxed); sum(mine) < seconds_) {
        seconds_ = sum(mine);
        best_ = std::move(mine);
      }
      if (squares == 0) break;  // the relaxed choice fits
      const double by = stretch * (seconds_ - value) / squares;
      for (std::size_t f = 0; f < forwards_; ++f)
        prices[f] = std::max(0.0, prices[f] + by * (used[f] - room_));
    }
    bound_ = std::min(bound_, seconds_);
    return true;
  }

  const std::vector<Held>& held() const { return held_; }
  const std::vector<int>& best() const { return best_; }
  double seconds() const { return seconds_; }
  double bound() const { return bound_; }

 private:
  std::vector<double> usage(const std::vector<int>& ways) const {
    std::vector<double> change(forwards_ + 1, 0.0);
    for (std::size_t h = 0; h < held_.size(); ++h) {
      const double bytes = held_[h].bytes[std::size_t(ways[h])];
      change[held_[h].first] += bytes;
      change[held_[h].last] -= bytes;
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    change.pop_back();
    return change;
  }
  // Sums of bytes below 2^53 are exact.
  bool fits(const std::vector<int>& ways) const {
    const std::vector<double> used = usage(ways);
    return std::all_of(used.begin(), used.end(), [&](double bytes) { return bytes <= room_; });
  }
  double sum(const std::vector<int>& ways) const {
    double seconds = 0;
    for (std::size_t h = 0; h < held_.size(); ++h)
      seconds += held_[h].seconds[std::size_t(ways[h])];
    return seconds;
  }

  std::vector<int> cheapest(const std::vector<double>& prices) const {
    std::vector<double> before(forwards_ + 1, 0.0);
    std::partial_sum(prices.begin(), prices.end(), before.begin() + 1);
    std::vector<int> ways;
    for (const Held& held : held_) {
      const double price = before[held.last] - before[held.first];
      int best = 0;
      for (std::size_t j = 1; j < held.seconds.size(); ++j)
        if (held.seconds[j] + price * held.bytes[j] <
            held.seconds[std::size_t(best)] + price * held.bytes[std::size_t(best)])
          best = static_cast<int>(j);
      ways.push_back(best);
    }
    return ways;
  }

  // Those of `wanted` that fit, the greatest gain a byte and moment first, then whatever else does.
  std::vector<int> mended(const std::vector<int>& wanted) const {
    std::vector<int> ways = lean_;
    std::vector<double> used = usage(ways);
    const auto take = [&](std::size_t h, int way) {
      const Held& held = held_[h];
      const double more = held.bytes[std::size_t(way)] - held.bytes[std::size_t(ways[h])];
      for (std::size_t f = held.first; f < held.last; ++f)
        if (used[f] + more > room_) return;
      for (std::size_t f = held.first; f < held.last; ++f) used[f] += more;
      ways[h] = way;
    };
    struct Upgrade {
      bool asked;
      double worth;
      std::size_t held;
      int way;
    };
    std::vector<Upgrade> upgrades;
    for (std::size_t h = 0; h < held_.size(); ++h)
      for (std::size_t j = 0; j < held_[h].seconds.size(); ++j) {
        const Held& held = held_[h];
        const auto lean = std::size_t(lean_[h]);
        const double gain = held.seconds[lean] - held.seconds[j],
                     more = (held.bytes[j] - held.bytes[lean]) *
                            static_cast<double>(held.last - held.first);
        if (gain > 0)
          upgrades.push_back({wanted[h] == static_cast<int>(j),
                              more > 0 ? gain / more : std::numeric_limits<double>::infinity(), h,
                              static_cast<int>(j)});
      }
    std::stable_sort(upgrades.begin(), upgrades.end(), [](const Upgrade& a, const Upgrade& b) {
      return std::tuple(!a.asked, -a.worth) < std::tuple(!b.asked, -b.worth);
    });
    for (const Upgrade& one : upgrades)
      if (held_[one.held].seconds[std::size_t(one.way)] <
          held_[one.held].seconds[std::size_t(ways[one.held])])
        take(one.held, one.way);
    return ways;
  }

  std::vector<Held> held_;
  std::size_t forwards_;
  double room_;
  std::vector<int> lean_, best_;
  double seconds_ = 0, bound_ = 0;
};

}  // namespace

std::optional<MemoryChoice> choose_memory(const std::vector<StepCosts>& ways,
                                          const std::vector<Turns>& orders) {
  const StepCosts& first = ways.front();
  MemoryChoice choice;
  for (const BranchCosts& branch : first.branches) choice.way.emplace_back(branch.costs.size(), 0);
  double seconds = 0, bound = 0;
  for (std::size_t r = 0; r < orders.size(); ++r) {
    std::vector<Held> held;
    std::map<std::tuple<int, int, int>, std::size_t> open;
    std::size_t forwards = 0;
    for (const Turn& turn : orders[r]) {
      const std::tuple key(turn.branch, turn.stage, turn.work);
      if (is_forward(turn)) {
        const BranchCosts& branch = first.branches[turn.branch];
        const auto at = static_cast<std::size_t>(turn.stage) * branch.microbatch_of.size() +
                        static_cast<std::size_t>(turn.work);
        Held one{turn.branch, at, forwards++, 0, {}, {}};
        for (const StepCosts& way : ways) {
          const StageCost& cost = way.branches[turn.branch].costs[at];
          one.seconds.push_back((cost.forward + cost.input + cost.weight).count());
          one.bytes.push_back(branch.learns ? static_cast<double>(cost.kept.value) : 0);
        }
        open[key] = held.size();
        held.push_back(std::move(one));
      } else if (const auto of = open.find(key); of != open.end()) {
        held[of->second].last = forwards;  // of a backward in two parts the second
      }
    }
    for (Held& one : held)
      if (one.last == 0) one.last = first.branches[one.branch].learns ? forwards : one.first + 1;
    const double room = first.capacity.empty() ? std::numeric_limits<double>::max()
                                               : static_cast<double>(first.capacity[r].value);
    RankChoice rank(std::move(held), forwards, room);
    if (!rank.run()) return {};
    for (std::size_t h = 0; h < rank.held().size(); ++h)
      choice.way[rank.held()[h].branch][rank.held()[h].at] = rank.best()[h];
    seconds += rank.seconds();
    bound += rank.bound();
  }
  choice.seconds = Seconds(seconds);
  choice.bound = Seconds(bound);
  return choice;
}

StepCosts chosen(const std::vector<StepCosts>& ways, const MemoryChoice& choice) {
  StepCosts costs = ways.front();
  for (std::size_t b = 0; b < costs.branches.size(); ++b)
    for (std::size_t at = 0; at < costs.branches[b].costs.size(); ++at)
      costs.branches[b].costs[at] = ways[std::size_t(choice.way[b][at])].branches[b].costs[at];
  return costs;
}

}  // namespace polyphony
