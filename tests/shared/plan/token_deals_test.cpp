// Assignments of tokens to context-parallel ranks: published vectors, bounds, random masks.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "shared/step/assign.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/random_masks.h"

namespace polyphony {
namespace {

using Kind = test::RandomMask::Kind;
constexpr std::int64_t kNoBound = std::int64_t{1} << 40;

std::vector<TokenBlock> blocks_of(const std::vector<double>& costs) {
  std::vector<TokenBlock> blocks;
  for (const double cost : costs) {
    const auto at = static_cast<std::int64_t>(blocks.size());
    blocks.push_back({{at, at + 1}, cost, cost});
  }
  return blocks;
}
// Numbers of blocks, from 1, by rank.
std::vector<std::vector<int>> assigned(const std::vector<double>& costs, int ranks) {
  std::vector<std::vector<int>> by_rank(static_cast<std::size_t>(ranks));
  const std::vector<std::size_t> to = assign_blocks(blocks_of(costs), ranks, kNoBound);
  for (std::size_t b = 0; b < to.size(); ++b) by_rank[to[b]].push_back(static_cast<int>(b) + 1);
  return by_rank;
}

struct Shares {
  double pairs = 0, cost = 0, tokens = 0;  // of the most laden rank, in means
};
Shares shares(const TokenMask& mask, TokenAssignment policy, int ranks, const TokenCosts& costs) {
  const std::vector<Rectangle> all = rectangles(mask);
  Shares most;
  double pair_sum = 0, cost_sum = 0;
  for (const std::vector<Interval>& rank : divide_tokens(policy, mask, 0, ranks, costs)) {
    double seen = 0, tokens = 0;
    for (const Interval& part : rank) {
      seen += static_cast<double>(pairs(all, part));
      tokens += static_cast<double>(part.size());
    }
    const double cost = costs.pair * seen + costs.token * tokens;
    most = {std::max(most.pairs, seen), std::max(most.cost, cost), std::max(most.tokens, tokens)};
    pair_sum += seen;
    cost_sum += cost;
  }
  return {most.pairs * ranks / pair_sum, most.cost * ranks / cost_sum,
          most.tokens * ranks / static_cast<double>(mask.tokens())};
}

}  // namespace

TEST_SUITE("token deals") {
  // Cornstarch (ICML 2026), Fig. 3a: 8, 5 + 1, 4 + 2, 2 + 2 + 2; of causal blocks 1 to 8 all have
  // 9.
  TEST_CASE("longest first") {
    CHECK(assigned({1, 2, 2, 4, 5, 2, 2, 8}, 4) ==
          std::vector<std::vector<int>>{{8}, {1, 5}, {4, 6}, {2, 3, 7}});
    CHECK(assigned({1, 2, 3, 4, 5, 6, 7, 8}, 4) ==
          std::vector<std::vector<int>>{{1, 8}, {2, 7}, {3, 6}, {4, 5}});
  }

  // 16 tokens, of which 4 to 7 and 10 to 12 are items that see themselves; blocks of two rows,
  // weighed by the 2 × 2 tiles that they touch: 1 2 2 2 5 2 7 8 (Cornstarch counts tiles).
  TEST_CASE("the sixteen tokens: longest first 15 and 14, zigzag 18 and 11, contiguous 7 and 22") {
    TokenMask mask;
    const Interval everything{0, 3};
    mask.add(4, 0, true, everything);
    mask.add(4, 1, false, {1, 2});
    mask.add(2, 0, true, everything);
    mask.add(3, 2, false, {2, 3});
    mask.add(3, 0, true, everything);
    const std::vector<Rectangle> all = rectangles(mask);
    std::vector<double> tiles;
    for (std::int64_t q = 0; q < 16; q += 2) {
      tiles.push_back(0);
      for (std::int64_t k = 0; k < 16; k += 2)
        tiles.back() += std::any_of(all.begin(), all.end(), [&](const Rectangle& r) {
          return pairs(cut(r, {q, q + 2}, {k, k + 2})) > 0;
        });
    }
    CHECK(tiles == std::vector<double>{1, 2, 2, 2, 5, 2, 7, 8});
    const auto loads = [&](const std::vector<std::vector<Interval>>& deal) {
      std::vector<double> sums;
      for (const std::vector<Interval>& rank : deal) {
        sums.push_back(0);
        for (const Interval& part : rank)
          for (std::int64_t q = part.begin; q < part.end; q += 2)
            sums.back() += tiles[static_cast<std::size_t>(q / 2)];
      }
      return sums;
    };
    std::vector<double> longest(2);
    const std::vector<std::size_t> to = assign_blocks(blocks_of(tiles), 2, kNoBound);
    for (std::size_t b = 0; b < tiles.size(); ++b) longest[to[b]] += tiles[b];
    CHECK(longest == std::vector<double>{15, 14});
    CHECK(loads(divide_tokens(TokenAssignment::zigzag, mask, 0, 2, {})) ==
          std::vector<double>{18, 11});
    CHECK(loads(divide_tokens(TokenAssignment::contiguous, mask, 0, 2, {})) ==
          std::vector<double>{7, 22});
  }

  TEST_CASE("a rank without room is skipped") {
    // Of costs 9 1 1 1 1 1 the first rank would take one, the second five.
    const std::vector<TokenBlock> blocks = blocks_of({9, 1, 1, 1, 1, 1});
    const std::vector<std::size_t> free = assign_blocks(blocks, 2, kNoBound),
                                   bound = assign_blocks(blocks, 2, 4);
    CHECK(std::count(free.begin(), free.end(), 0u) == 1);
    CHECK(std::count(bound.begin(), bound.end(), 0u) == 2);
  }

  TEST_CASE("every assignment covers the whole axis once") {
    for (const std::int64_t tokens : {1, 7, 100, 4097}) {
      const TokenMask mask = test::RandomMask::make(Kind::prefix, tokens, 3);
      for (int policy = 0; policy <= static_cast<int>(last_of(TokenAssignment{})); ++policy) {
        std::vector<Interval> parts;
        for (const auto& rank :
             divide_tokens(static_cast<TokenAssignment>(policy), mask, 0, 3, TokenCosts{1, 0, 5})) {
          CHECK(std::is_sorted(rank.begin(), rank.end()));
          parts.insert(parts.end(), rank.begin(), rank.end());
        }
        std::sort(parts.begin(), parts.end());
        std::int64_t at = 0;
        for (const Interval& part : parts) {
          REQUIRE(part.begin == at);
          at = part.end;
        }
        REQUIRE(at == tokens);
      }
    }
  }

  TEST_CASE("random assignments give each rank equally many blocks, out of order") {
    TokenMask mask;
    mask.add(6400, 0, true, {0, 1});
    const auto deal = divide_tokens(TokenAssignment::random, mask, 0, 4, {});
    for (const std::vector<Interval>& rank : deal) {
      std::int64_t tokens = 0;
      for (const Interval& part : rank) tokens += part.size();
      CHECK(tokens == 1600);
      CHECK(rank.size() > 4);
    }
    CHECK(deal == divide_tokens(TokenAssignment::random, mask, 0, 4, {}));
  }

  TEST_CASE("random masks: attention and total work are even where those of zigzag are not") {
    const TokenCosts attention{1, 0, 0}, language = token_costs(examples::llama_70b());
    int uneven = 0;
    for (const Kind kind :
         {Kind::causal_blocks, Kind::prefix, Kind::prefix_documents, Kind::embedded, Kind::packed})
      for (const int ranks : {4, 8, 16})
        for (unsigned seed = 0; seed < 6; ++seed) {
          const TokenMask mask = test::RandomMask::make(kind, 1 << 16, seed);
          const double zigzag = shares(mask, TokenAssignment::zigzag, ranks, attention).pairs;
          const Shares alone = shares(mask, TokenAssignment::balanced, ranks, attention),
                       both = shares(mask, TokenAssignment::balanced, ranks, language);
          CAPTURE(static_cast<int>(kind));
          CAPTURE(ranks);
          CAPTURE(seed);
          uneven += zigzag > 1.3 ? 1 : 0;
          CHECK(std::max(alone.pairs, both.pairs) <= 1.1);
          CHECK(both.cost <= 1.1);
          CHECK(std::max(alone.tokens, both.tokens) <= kMostTokens + 1e-3);
        }
    CHECK(uneven >= 40);
  }

  // Not a test: scripts/bench_deals prints this.
  TEST_CASE("deal bench" * doctest::skip()) {
    constexpr std::int64_t kMany = 1'000'000;
    TokenMask text, images;
    text.add(kMany, 0, true, {0, 1});
    for (int image = 1; image <= 4000; ++image) {
      images.add(100, 0, true, {0, 4001});
      images.add(150, image, false, {image, image + 1});
    }
    TokenMask packed = test::RandomMask::make(Kind::packed, kMany, 1);
    const TokenCosts costs = token_costs(examples::llama_70b());
    for (const auto& [what, mask] : {std::pair("text", &text), std::pair("packed", &packed),
                                     std::pair("4000 images", &images)})
      for (int policy = 0; policy <= static_cast<int>(last_of(TokenAssignment{})); ++policy) {
        const auto deal = static_cast<TokenAssignment>(policy);
        const auto begin = std::chrono::steady_clock::now();
        const std::size_t ranks = divide_tokens(deal, *mask, 0, 64, costs).size();
        const std::chrono::duration<double, std::milli> took =
            std::chrono::steady_clock::now() - begin;
        std::printf("1,000,000 tokens, %zu ranks, %-11s  %-10s  %.3f ms\n", ranks, what, name(deal),
                    took.count());
      }
  }
}

}  // namespace polyphony
