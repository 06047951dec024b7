// Splits of random chains, compared with those of an exhaustive search.
#include "shared/plan/partition.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <tuple>

namespace polyphony {
namespace {

// Costs, waits and memory are whole numbers: sums are exact in any order.
struct Drawn {
  std::vector<double> costs;
  std::vector<std::vector<Hop>> hops;  // by stage and begin
  std::vector<int> room;               // by stage
};

Drawn draw(std::mt19937& random, std::size_t units, std::size_t stages) {
  const auto below = [&](std::size_t end) { return static_cast<double>(random() % end); };
  const std::size_t kinds = 1 + random() % 6;
  Drawn drawn;
  for (std::size_t u = 0; u < units; ++u) drawn.costs.push_back(below(kinds));
  drawn.hops.assign(stages, std::vector<Hop>(units));
  for (std::vector<Hop>& stage : drawn.hops)
    for (Hop& hop : stage) hop = {below(3), below(2)};
  for (std::size_t s = 0; s < stages; ++s)
    drawn.room.push_back(static_cast<int>(4 + random() % (3 * units)));
  return drawn;
}

Chain chain_of(const Drawn& drawn, bool waits, bool memory) {
  Chain chain{drawn.costs};
  if (waits)
    chain.hop = [&drawn](int stage, int begin) {
      return drawn.hops[static_cast<std::size_t>(stage)][static_cast<std::size_t>(begin)];
    };
  // The memory of a unit: its parameters and its saved activations, of which earlier stages have
  // more.
  if (memory)
    chain.lacks = [&drawn](const std::vector<int>& sizes, int stage) {
      const auto s = static_cast<std::size_t>(stage);
      return std::max(0, sizes[s] * static_cast<int>(2 + sizes.size() - s) - drawn.room[s]);
    };
  return chain;
}

// Most expensive stage, sum of squares, ends: the least of all that fit. No ends: none fits.
using Judged = std::tuple<double, double, std::vector<int>>;
Judged brute_force(const Chain& chain, int stages) {
  const int units = static_cast<int>(chain.costs.size());
  Judged best{1e300, 1e300, {}};
  std::vector<int> ends, sizes(static_cast<std::size_t>(stages), 1);
  const auto look = [&](auto self, int begin, double bottleneck, double squares) -> void {
    const int stage = static_cast<int>(ends.size()), left = stages - stage - 1;
    double cost = stage > 0 && chain.hop ? chain.hop(stage, begin).rows : 0;
    for (int end = begin + 1; end <= units - left; ++end) {
      cost += chain.costs[static_cast<std::size_t>(end - 1)];
      if (left == 0 && end < units) continue;
      sizes[static_cast<std::size_t>(stage)] = end - begin;
      if (chain.lacks && chain.lacks(sizes, stage) > 0) break;
      const double all = cost + (left > 0 && chain.hop ? chain.hop(stage + 1, end).gradients : 0);
      ends.push_back(end);
      if (left > 0)
        self(self, end, std::max(bottleneck, all), squares + all * all);
      else
        best = std::min(best, Judged{std::max(bottleneck, all), squares + all * all, ends});
      ends.pop_back();
    }
  };
  look(look, 0, 0, 0);
  return best;
}

std::vector<int> ends_of(const std::vector<int>& sizes) {
  std::vector<int> ends;
  for (const int size : sizes) ends.push_back((ends.empty() ? 0 : ends.back()) + size);
  return ends;
}

}  // namespace

TEST_SUITE("partition") {
  TEST_CASE("the split is the best of all, with ties, free units, waiting times and memory") {
    std::mt19937 random(1);
    int none = 0;
    for (int round = 0; round < 4000; ++round) {
      const std::size_t units = 1 + random() % 11, stages = 1 + random() % units;
      const Drawn drawn = draw(random, units, stages);
      const Chain chain = chain_of(drawn, round % 2 > 0, round % 4 > 1);
      CAPTURE(round);
      const auto expected = std::get<2>(brute_force(chain, static_cast<int>(stages)));
      REQUIRE(ends_of(partition_chain(chain, static_cast<int>(stages))) == expected);
      none += expected.empty();
    }
    CHECK(none > 20);
    CHECK(none < 1500);
  }

  // Two ranks with two stages each, of up to 10 units, compared with the most expensive rank of the
  // best split.
  TEST_CASE(
      "ranks with several stages: the split is mostly the best, never worse than stage by stage") {
    std::mt19937 random(2);
    int best = 0, total = 0;
    for (const std::vector<int>& ranks : {std::vector<int>{0, 1, 0, 1}, {0, 1, 1, 0}})
      for (int round = 0; round < 300; ++round) {
        Chain chain;
        const std::size_t units = 5 + random() % 6, kinds = 2 + random() % 6;
        for (std::size_t u = 0; u < units; ++u)
          chain.costs.push_back(1 + static_cast<double>(random() % kinds));
        const auto bottleneck = [&](const std::vector<int>& sizes) {
          const std::vector<double> costs = rank_costs(chain, ranks, sizes);
          return *std::max_element(costs.begin(), costs.end());
        };
        double least = 1e300;
        const int n = static_cast<int>(units);
        for (int a = 1; a < n - 2; ++a)
          for (int b = a + 1; b < n - 1; ++b)
            for (int c = b + 1; c < n; ++c)
              least = std::min(least, bottleneck({a, b - a, c - b, n - c}));
        const double found = bottleneck(partition_ranks(chain, ranks));
        CAPTURE(round);
        REQUIRE(found >= least);
        REQUIRE(found <= bottleneck(partition_chain(chain, 4)));
        best += found == least;
        ++total;
      }
    MESSAGE(best << " of " << total << " are the best");
    CHECK(best > 0.9 * total);
  }

  TEST_CASE("the next best is the best of all others") {
    std::mt19937 random(3);
    for (int round = 0; round < 300; ++round) {
      const std::size_t units = 4 + random() % 6;
      Chain chain;
      for (std::size_t u = 0; u < units; ++u)
        chain.costs.push_back(static_cast<double>(random() % 5));
      const std::vector<int> ranks{0, 1, 2};
      const std::vector<int> best = partition_ranks(chain, ranks);
      double bottleneck = 1e300, squares = 1e300;
      const int n = static_cast<int>(units);
      const auto judge = [&](const std::vector<int>& sizes) {
        double most = 0, sum = 0;
        for (const double cost : rank_costs(chain, ranks, sizes))
          most = std::max(most, cost), sum += cost * cost;
        return std::pair{most, sum};
      };
      for (int a = 1; a < n - 1; ++a)
        for (int b = a + 1; b < n; ++b)
          if (std::vector<int>{a, b - a, n - b} != best)
            std::tie(bottleneck, squares) =
                std::min(std::pair{bottleneck, squares}, judge({a, b - a, n - b}));
      const std::vector<int> next = next_best(chain, ranks, best);
      CAPTURE(round);
      REQUIRE(next != best);
      REQUIRE(judge(next) == std::pair{bottleneck, squares});
    }
    CHECK(next_best({{1, 2}}, {0, 1}, {1, 1}).empty());
  }

  // Three stages of 8 equal units: 2, 3, 3 and not 3, 3, 2 or 1, 4, 3: even, the least first.
  TEST_CASE("equal units are split evenly, the smaller stages first") {
    CHECK(partition_chain({std::vector<double>(8, 0.1)}, 3) == std::vector<int>{2, 3, 3});
    CHECK(partition_chain({std::vector<double>(3, 0.0)}, 3) == std::vector<int>{1, 1, 1});
  }

  // 5 units of 10 on 4 stages: one has two. Between the last two stages rows and gradients take 3
  // each, so that it is one of the first two, of which the second makes ends earlier.
  TEST_CASE("a stage that waits gets fewer units") {
    Chain chain{std::vector<double>(5, 10.0)};
    CHECK(partition_chain(chain, 4) == std::vector<int>{1, 1, 1, 2});
    chain.hop = [](int stage, int) { return stage == 3 ? Hop{3, 3} : Hop{}; };
    CHECK(partition_chain(chain, 4) == std::vector<int>{1, 2, 1, 1});
  }
}

}  // namespace polyphony
