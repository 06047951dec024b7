#include "shared/planner/memory_choice.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "shared/planner/host_copies.h"

namespace polyphony {
namespace {

constexpr int kSteps = 200;  // iterations of the subgradient method

// A (stage, microbatch) on a rank. Its activations are in flight at moments [first, last) of the
// rank; the bytes that an option offloads are on the host at moments [left, back).
struct Held {
  std::size_t branch = 0, at = 0;
  std::size_t first = 0, last = 0, left = 0, back = 0;
  std::vector<double> seconds, bytes, moved;  // by option; moved: part of bytes

  double at_moment(std::size_t moment, std::size_t way) const {
    return bytes[way] - (moment >= left && moment < back ? moved[way] : 0);
  }
};

class RankChoice {
 public:
  RankChoice(std::vector<Held> held, std::size_t moments, double room)
      : held_(std::move(held)), moments_(moments), room_(room) {}

  // Returns false if not even the options with the least memory fit.
  bool run() {
    std::vector<int> lean(held_.size());
    for (std::size_t h = 0; h < held_.size(); ++h) lean[h] = leanest(held_[h]);
    if (!fits(lean) && !repair_lean(lean)) return false;
    lean_ = lean;
    best_ = repaired(lean);
    seconds_ = sum(best_);
    bound_ = 0;
    for (const Held& held : held_)
      bound_ += *std::min_element(held.seconds.begin(), held.seconds.end());
    std::vector<double> prices(moments_, 0.0);
    double stretch = 1;
    for (int step = 0; step < kSteps && seconds_ > bound_ * (1 + 1e-9); ++step) {
      const std::vector<int> relaxed = cheapest(prices);
      const std::vector<double> used = usage(relaxed);
      double value = sum(relaxed), squares = 0;
      for (std::size_t f = 0; f < moments_; ++f) {
        value += prices[f] * (used[f] - room_);
        const double over = used[f] - room_;
        if (over > 0 || prices[f] > 0) squares += over * over;
      }
      if (value > bound_)
        bound_ = value;
      else
        stretch *= 0.95;
      if (std::vector<int> mine = repaired(relaxed); sum(mine) < seconds_) {
        seconds_ = sum(mine);
        best_ = std::move(mine);
      }
      if (squares == 0) break;  // the relaxed choice fits
      const double by = stretch * (seconds_ - value) / squares;
      for (std::size_t f = 0; f < moments_; ++f)
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
    std::vector<double> change(moments_ + 1, 0.0);
    for (std::size_t h = 0; h < held_.size(); ++h) {
      const auto way = std::size_t(ways[h]);
      change[held_[h].first] += held_[h].bytes[way];
      change[held_[h].last] -= held_[h].bytes[way];
      change[held_[h].left] -= held_[h].moved[way];
      change[held_[h].back] += held_[h].moved[way];
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    change.pop_back();
    return change;
  }
  // Bytes times number of moments.
  static double area(const Held& held, std::size_t way) {
    return held.bytes[way] * static_cast<double>(held.last - held.first) -
           held.moved[way] * static_cast<double>(held.back - held.left);
  }
  static int leanest(const Held& held) {
    std::size_t best = 0;
    for (std::size_t j = 1; j < held.bytes.size(); ++j)
      if (area(held, j) < area(held, best)) best = j;
    return static_cast<int>(best);
  }
  // With offloading, no option is the leanest at all moments. At each moment that exceeds the room,
  // entries switch to the option with the least memory at that moment.
  bool repair_lean(std::vector<int>& ways) const {
    for (std::size_t f = 0; f < moments_; ++f) {
      std::vector<double> used = usage(ways);
      for (std::size_t h = 0; h < held_.size() && used[f] > room_; ++h) {
        const Held& held = held_[h];
        if (f < held.first || f >= held.last) continue;
        const auto now = std::size_t(ways[h]);
        for (std::size_t j = 0; j < held.bytes.size(); ++j)
          if (held.at_moment(f, j) < held.at_moment(f, std::size_t(ways[h])))
            ways[h] = static_cast<int>(j);
        used[f] += held.at_moment(f, std::size_t(ways[h])) - held.at_moment(f, now);
      }
    }
    return fits(ways);
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
    std::vector<double> before(moments_ + 1, 0.0);
    std::partial_sum(prices.begin(), prices.end(), before.begin() + 1);
    std::vector<int> ways;
    for (const Held& held : held_) {
      const double price = before[held.last] - before[held.first],
                   away = before[held.back] - before[held.left];
      const auto priced = [&](std::size_t j) {
        return held.seconds[j] + price * held.bytes[j] - away * held.moved[j];
      };
      int best = 0;
      for (std::size_t j = 1; j < held.seconds.size(); ++j)
        if (priced(j) < priced(std::size_t(best))) best = static_cast<int>(j);
      ways.push_back(best);
    }
    return ways;
  }

  // Returns a choice that fits: the options of `wanted`, by descending gain per byte and moment,
  // then any other options that fit.
  std::vector<int> repaired(const std::vector<int>& wanted) const {
    std::vector<int> ways = fits(wanted) ? wanted : lean_;
    std::vector<double> used = usage(ways);
    const auto take = [&](std::size_t h, int way) {
      const Held& held = held_[h];
      const auto more = [&](std::size_t f) {
        return held.at_moment(f, std::size_t(way)) - held.at_moment(f, std::size_t(ways[h]));
      };
      for (std::size_t f = held.first; f < held.last; ++f)
        if (more(f) > 0 && used[f] + more(f) > room_) return;
      for (std::size_t f = held.first; f < held.last; ++f) used[f] += more(f);
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
                     more = area(held, j) - area(held, lean);
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
  std::size_t moments_;
  double room_;
  std::vector<int> lean_, best_;
  double seconds_ = 0, bound_ = 0;
};

}  // namespace

std::optional<MemoryChoice> choose_memory(const std::vector<StepCosts>& ways,
                                          const std::vector<Actions>& orders) {
  const StepCosts& first = ways.front();
  StepCosts quickest = first;  // fastest option of each action
  bool moves = false;
  MemoryChoice choice;
  for (std::size_t b = 0; b < first.branches.size(); ++b) {
    std::vector<StageCost>& costs = quickest.branches[b].costs;
    choice.way.emplace_back(costs.size(), 0);
    for (const StepCosts& way : ways)
      for (std::size_t at = 0; at < costs.size(); ++at) {
        const StageCost& cost = way.branches[b].costs[at];
        moves = moves || cost.moved > Bytes(0);
        costs[at].forward = std::min(costs[at].forward, cost.forward);
        costs[at].input = std::min(costs[at].input, cost.input);
        costs[at].weight = std::min(costs[at].weight, cost.weight);
      }
  }
  double seconds = 0, bound = 0;
  for (std::size_t r = 0; r < orders.size(); ++r) {
    // Number of moments before each action.
    std::vector<std::size_t> before{0};
    for (const Action& action : orders[r])
      before.push_back(before.back() + (moves || is_forward(action) ? 1 : 0));
    const std::size_t moments = before.back();
    const auto moment = [&](int position) { return before[static_cast<std::size_t>(position)]; };
    std::vector<Held> held;
    for (const Trip& trip : find_trips(quickest, orders[r])) {
      const bool learns = first.branches[trip.branch].learns;
      Held one{trip.branch, trip.at, moment(trip.forward), moment(trip.last + 1), 0, 0, {}, {}, {}};
      if (trip.backward < 0) one.last = learns ? moments : one.first + 1;
      if (trip.goes()) one.left = moment(trip.forward + 2), one.back = moment(trip.backward - 1);
      for (const StepCosts& way : ways) {
        const StageCost& cost = way.branches[trip.branch].costs[trip.at];
        const bool leaves = cost.moved > Bytes(0);
        Seconds time = cost.forward + cost.input + cost.weight;
        if (leaves) time += trip.paid_out(cost.copy) + trip.paid_back(cost.copy);
        one.seconds.push_back(time.count());
        one.bytes.push_back(learns ? static_cast<double>((cost.kept + cost.moved).value) : 0);
        one.moved.push_back(learns ? static_cast<double>(cost.moved.value) : 0);
      }
      held.push_back(std::move(one));
    }
    const double room = first.capacity.empty() ? std::numeric_limits<double>::max()
                                               : static_cast<double>(first.capacity[r].value);
    RankChoice rank(std::move(held), moments, room);
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

StepCosts chosen(const std::vector<StepCosts>& ways, const MemoryChoice& choice,
                 const std::vector<Actions>& orders) {
  StepCosts costs = ways.front();
  for (std::size_t b = 0; b < costs.branches.size(); ++b)
    for (std::size_t at = 0; at < costs.branches[b].costs.size(); ++at)
      costs.branches[b].costs[at] = ways[std::size_t(choice.way[b][at])].branches[b].costs[at];
  pay_for_copies(orders, costs);
  return costs;
}

}  // namespace polyphony
