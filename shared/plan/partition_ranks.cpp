#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "shared/plan/partition.h"

namespace polyphony {
namespace {

// The value of a split: bytes by which its ranks exceed their memory, cost of its most expensive
// rank, sum of squared costs.
using Judged = std::array<double, 3>;

// Returns whether `one` is better by more than rounding.
bool better(const Judged& one, const Judged& other) {
  constexpr double kLess = 1 - 1e-9;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one[i] < other[i] * kLess) return true;
    if (other[i] < one[i] * kLess) return false;
  }
  return false;
}

class Ranks {
 public:
  Ranks(const Chain& chain, const std::vector<int>& rank_of_stage)
      : Ranks(chain, rank_of_stage, hops_of(chain, rank_of_stage.size())) {}
  // `hops`: hops_of() the chain and as many stages.
  Ranks(const Chain& chain, const std::vector<int>& rank_of_stage, std::vector<Hop> hops)
      : chain_(chain),
        rank_of_(rank_of_stage),
        hops_(std::move(hops)),
        prefix_(chain.costs.size() + 1, 0.0),
        costs_(1 + static_cast<std::size_t>(
                       *std::max_element(rank_of_stage.begin(), rank_of_stage.end()))) {
    std::partial_sum(chain.costs.begin(), chain.costs.end(), prefix_.begin() + 1);
  }

  const std::vector<double>& costs(const std::vector<int>& sizes) {
    std::fill(costs_.begin(), costs_.end(), 0.0);
    std::size_t begin = 0;
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      const std::size_t end = begin + static_cast<std::size_t>(sizes[s]);
      costs_[static_cast<std::size_t>(rank_of_[s])] += cost_of(s, begin, end);
      begin = end;
    }
    return costs_;
  }

  // Moves one unit at a time from a stage to another, shifting the stages between them: the best
  // such move is made as long as one improves the split. If memory is short, units are taken from
  // the rank that exceeds its memory the most.
  std::vector<int> improved(std::vector<int> sizes) {
    if (sizes.empty()) return sizes;
    for (Judged best = judge(sizes);;) {
      const bool lacking = best[0] > 0;
      const auto worst = std::max_element(lacking_.begin(), lacking_.end()) - lacking_.begin();
      std::vector<int> next;
      if (!lacking) set_moves(sizes);
      for (std::size_t from = 0; from < sizes.size(); ++from) {
        if ((lacking && rank_of_[from] != worst) || sizes[from] < 2) continue;
        if (!lacking) judge_moves(from);
        for (std::size_t to = 0; to < sizes.size(); ++to) {
          if (to == from || (!lacking && !better(moves_[to].judged, best))) continue;
          std::vector<int> tried = sizes;
          --tried[from];
          ++tried[to];
          const Judged found = judge(tried, lacking ? nullptr : &best);
          if (!better(found, best)) continue;
          best = found;
          next = std::move(tried);
        }
      }
      if (next.empty()) return sizes;
      sizes = std::move(next);
      judge(sizes);
    }
  }

  // Memory is expensive to compute, and is not computed where costs are no better than those of
  // `than`.
  Judged judge(const std::vector<int>& sizes, const Judged* than = nullptr) {
    Judged judged{};
    for (const double cost : costs(sizes)) {
      judged[1] = std::max(judged[1], cost);
      judged[2] += cost * cost;
    }
    lacking_.assign(costs_.size(), 0.0);
    if (!chain_.lacks || (than != nullptr && !better(judged, *than))) return judged;
    std::vector<bool> counted(costs_.size(), false);
    for (std::size_t s = 0; s < sizes.size(); ++s) {  // the same for all stages of a rank
      const auto rank = static_cast<std::size_t>(rank_of_[s]);
      if (counted[rank]) continue;
      counted[rank] = true;
      lacking_[rank] = chain_.lacks(sizes, static_cast<int>(s));
    }
    judged[0] = std::accumulate(lacking_.begin(), lacking_.end(), 0.0);
    return judged;
  }

 private:
  // What a move of one unit changes in the cost of one stage of a split.
  struct Move {
    double shifted_left = 0, shifted_right = 0;  // a move passes over it
    double first_lost = 0, last_lost = 0;        // its first or last unit goes to another stage
    double first_added = 0, last_added = 0;      // it takes the unit before it, or the one behind
    Judged judged{};                             // of the split with the move to this stage
  };

  double cost_of(std::size_t stage, std::size_t begin, std::size_t end) const {
    const double own = prefix_[end] - prefix_[begin];
    if (hops_.empty()) return own;
    return own + hops_[stage * prefix_.size() + begin].rows +
           hops_[(stage + 1) * prefix_.size() + end].gradients;
  }

  void set_moves(const std::vector<int>& sizes) {
    unmoved_ = costs(sizes);
    moves_.assign(sizes.size(), {});
    const std::size_t units = prefix_.size() - 1;
    std::size_t begin = 0;
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      const std::size_t end = begin + static_cast<std::size_t>(sizes[s]);
      const double now = cost_of(s, begin, end);
      Move& move = moves_[s];
      if (begin > 0) {
        move.shifted_left = cost_of(s, begin - 1, end - 1) - now;
        move.first_added = cost_of(s, begin - 1, end) - now;
      }
      if (end < units) {
        move.shifted_right = cost_of(s, begin + 1, end + 1) - now;
        move.last_added = cost_of(s, begin, end + 1) - now;
      }
      move.first_lost = cost_of(s, begin + 1, end) - now;
      move.last_lost = cost_of(s, begin, end - 1) - now;
      begin = end;
    }
  }

  // Sets Move::judged of all stages to what moving a unit from stage `from` to them gives, without
  // memory: two walks away from `from`, in each of which one stage more is shifted at a step.
  void judge_moves(std::size_t from) {
    const auto cost = [&](std::size_t stage) -> double& {
      return moved_[static_cast<std::size_t>(rank_of_[stage])];
    };
    const auto judge_with = [&](std::size_t to, double added) {
      double& own = cost(to);
      const double before = std::exchange(own, own + added);
      Judged judged{};
      for (const double each : moved_) {
        judged[1] = std::max(judged[1], each);
        judged[2] += each * each;
      }
      moves_[to].judged = judged;
      own = before;
    };
    moved_ = unmoved_;
    cost(from) += moves_[from].last_lost;
    for (std::size_t to = from + 1; to < moves_.size(); ++to) {
      judge_with(to, moves_[to].first_added);
      cost(to) += moves_[to].shifted_left;
    }
    moved_ = unmoved_;
    cost(from) += moves_[from].first_lost;
    for (std::size_t to = from; to-- > 0;) {
      judge_with(to, moves_[to].last_added);
      cost(to) += moves_[to].shifted_right;
    }
  }

  const Chain& chain_;
  const std::vector<int>& rank_of_;
  std::vector<Hop> hops_;
  std::vector<double> prefix_;
  std::vector<double> costs_, lacking_;  // by rank, of the split last judged
  std::vector<Move> moves_;              // by stage, from the split of set_moves()
  std::vector<double> unmoved_, moved_;  // by rank
};

bool one_stage_each(std::vector<int> rank_of_stage) {
  std::sort(rank_of_stage.begin(), rank_of_stage.end());
  return std::adjacent_find(rank_of_stage.begin(), rank_of_stage.end()) == rank_of_stage.end();
}

}  // namespace

std::vector<double> rank_costs(const Chain& chain, const std::vector<int>& rank_of_stage,
                               const std::vector<int>& sizes) {
  return Ranks(chain, rank_of_stage).costs(sizes);
}

std::vector<int> partition_ranks(const Chain& chain, const std::vector<int>& rank_of_stage) {
  const int stages = static_cast<int>(rank_of_stage.size());
  Chain free = chain;
  free.lacks = {};
  std::vector<Hop> hops = hops_of(chain, rank_of_stage.size());
  if (!one_stage_each(rank_of_stage)) {
    std::vector<int> sizes = partition_chain(free, stages, hops);
    return Ranks(chain, rank_of_stage, std::move(hops)).improved(std::move(sizes));
  }
  std::vector<int> sizes = partition_chain(chain, stages, hops);
  return sizes.empty() && chain.lacks ? partition_chain(free, stages, hops) : sizes;
}

std::vector<int> next_best(const Chain& chain, const std::vector<int>& rank_of_stage,
                           const std::vector<int>& sizes) {
  std::vector<int> best;
  Judged least{};
  int begin = 0;
  for (std::size_t s = 1; s < sizes.size();
       ++s) {  // the best split in which stage s begins elsewhere
    begin += sizes[s - 1];
    Chain other = chain;
    other.hop = [&, stage = static_cast<int>(s), begin](int at, int unit) {
      if (at == stage && unit == begin) return Hop{std::numeric_limits<double>::infinity(), 0};
      return chain.hop ? chain.hop(at, unit) : Hop{};
    };
    std::vector<int> found = partition_ranks(other, rank_of_stage);
    if (found.empty()) continue;
    const Judged judged = Ranks(chain, rank_of_stage).judge(found);
    if (!best.empty() && !better(judged, least)) continue;
    best = std::move(found);
    least = judged;
  }
  return best;
}

}  // namespace polyphony
