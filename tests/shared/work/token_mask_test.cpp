// Compares the rectangles of a mask, pair by pair, with the definition of attention between two
// tokens.
#include <doctest/doctest.h>

#include <random>

#include "shared/work/token_mask.h"

namespace polyphony {
namespace {

const MaskRun& run_of(const TokenMask& mask, std::int64_t token) {
  for (const MaskRun& run : mask.runs)
    if (token < run.tokens.end) return run;
  FAIL("no run has token " << token);
  return mask.runs.back();
}

// The definition: whether token q attends to token k.
bool sees(const TokenMask& mask, std::int64_t q, std::int64_t k, std::int64_t window) {
  const MaskRun &query = run_of(mask, q), &key = run_of(mask, k);
  if (window > 0 && std::abs(q - k) >= window) return false;
  const bool attended = query.attends.begin <= key.group && key.group < query.attends.end;
  return attended && (k <= q || (!query.causal && query.group == key.group));
}

bool covers(const Rectangle& r, std::int64_t q, std::int64_t k) {
  return r.queries.begin <= q && q < r.queries.end && r.keys.begin <= k && k < r.keys.end &&
         r.least <= k - q && k - q <= r.most;
}
int covering(const std::vector<Rectangle>& all, std::int64_t q, std::int64_t k) {
  int count = 0;
  for (const Rectangle& r : all) count += covers(r, q, k) ? 1 : 0;
  return count;
}

TokenMask random_mask(std::mt19937& random) {
  TokenMask mask;
  const int groups = 1 + static_cast<int>(random() % 4), runs = 1 + static_cast<int>(random() % 7);
  std::vector<Interval> attends;
  std::vector<bool> causal;
  for (int g = 0; g < groups; ++g) {
    const auto first = static_cast<std::int64_t>(random() % (static_cast<unsigned>(g) + 1));
    attends.push_back(
        {first, g + 1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(groups - g))});
    causal.push_back(random() % 2 == 0);
  }
  for (int r = 0; r < runs; ++r) {
    const std::size_t g = random() % static_cast<unsigned>(groups);
    mask.add(static_cast<std::int64_t>(1 + random() % 6), static_cast<int>(g), causal[g],
             attends[g]);
  }
  return mask;
}

}  // namespace

TEST_SUITE("token mask") {
  TEST_CASE("rectangles cover each pair that attends once, and no other") {
    std::mt19937 random(7);
    for (int round = 0; round < 400; ++round) {
      const TokenMask mask = random_mask(random);
      const auto window = static_cast<std::int64_t>(round % 3 == 0 ? 0 : 1 + random() % 8);
      const std::vector<Rectangle> all = rectangles(mask, window);
      std::vector<Rectangle> kernels;
      for (const Rectangle& r : all)
        for (const Rectangle& part : kernel_rectangles(r)) kernels.push_back(part);
      std::int64_t attending = 0;
      CAPTURE(round);
      for (std::int64_t q = 0; q < mask.tokens(); ++q) {
        std::int64_t row = 0;
        for (std::int64_t k = 0; k < mask.tokens(); ++k) {
          const int wanted = sees(mask, q, k, window) ? 1 : 0;
          REQUIRE(covering(all, q, k) == wanted);
          REQUIRE(covering(kernels, q, k) == wanted);
          row += wanted;
        }
        REQUIRE(pairs(all, {q, q + 1}) == row);
        attending += row;
      }
      REQUIRE(pairs(all, {0, mask.tokens()}) == attending);
    }
  }

  TEST_CASE(
      "kernel rectangles need bitmaps only at the edges of windows, and every row has a key") {
    std::mt19937 random(8);
    for (int round = 0; round < 200; ++round) {
      const TokenMask mask = random_mask(random);
      const auto window = static_cast<std::int64_t>(round % 2 == 0 ? 0 : 1 + random() % 8);
      for (const Rectangle& r : rectangles(mask, window))
        for (const Rectangle& part : kernel_rectangles(r)) {
          const Filling kind = filling(part);
          REQUIRE(kind != Filling::none);
          if (kind == Filling::bitmap) {
            REQUIRE(window > 0);
            REQUIRE(part.queries.size() <= window);
          }
          for (std::int64_t q = part.queries.begin; q < part.queries.end; ++q)
            REQUIRE(pairs({part}, {q, q + 1}) > 0);
        }
    }
  }

  TEST_CASE("a cut has exactly the pairs of its queries and keys") {
    std::mt19937 random(9);
    for (int round = 0; round < 300; ++round) {
      const TokenMask mask = random_mask(random);
      const auto some = [&] {
        const auto begin = static_cast<std::int64_t>(random() % 20);
        return Interval{begin, begin + static_cast<std::int64_t>(random() % 12)};
      };
      const Interval queries = some(), keys = some();
      for (const Rectangle& r : rectangles(mask, round % 2 == 0 ? 0 : 3)) {
        const Rectangle part = cut(r, queries, keys);
        std::int64_t count = 0;
        for (std::int64_t q = queries.begin; q < queries.end; ++q)
          for (std::int64_t k = keys.begin; k < keys.end; ++k) {
            REQUIRE(covers(part, q, k) == covers(r, q, k));
            count += covers(r, q, k) ? 1 : 0;
          }
        REQUIRE(pairs(part) == count);
      }
    }
  }

  TEST_CASE("text around an image that attends only to itself needs four standard rectangles") {
    TokenMask mask;
    mask.add(3, 0, true, {0, 2});
    mask.add(2, 1, false, {1, 2});
    mask.add(4, 0, true, {0, 2});
    // Tokens 0 to 2 are causal, 3 and 4 attend in both directions, 5 to 8 attend to all earlier
    // tokens and to themselves.
    const std::vector<Rectangle> all = rectangles(mask);
    REQUIRE(all.size() == 3);
    CHECK(filling(all[0]) == Filling::causal);
    CHECK(all[1] == full_rectangle({3, 5}, {3, 5}));
    CHECK(all[2] == Rectangle{{5, 9}, {0, 9}, -8, 0});
    CHECK(kernel_rectangles(all[2]) ==
          std::vector<Rectangle>{full_rectangle({5, 9}, {0, 5}), Rectangle{{5, 9}, {5, 9}, -3, 0}});
    CHECK(pairs(all, {0, 9}) == 6 + 4 + (6 + 7 + 8 + 9));
  }

  TEST_CASE("adjacent runs with the same properties are merged") {
    TokenMask mask;
    mask.add(3, 0, true, {0, 1});
    mask.add(0, 1, true, {1, 2});
    mask.add(2, 0, true, {0, 1});
    CHECK(mask.runs == std::vector<MaskRun>{{{0, 5}, 0, true, {0, 1}}});
    CHECK(rectangles(mask) == std::vector<Rectangle>{{{0, 5}, {0, 5}, -4, 0}});
  }
}

}  // namespace polyphony
