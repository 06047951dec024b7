#include "shared/program/group_rounds.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

using namespace polyphony;

namespace {

using Groups = std::vector<std::vector<Rank>>;

// `size` ranks, `stride` apart, of all `ranks`.
void add_spaced(Groups& groups, int ranks, int size, int stride) {
  for (int first = 0; first < ranks; ++first) {
    if (first / stride % size != 0) continue;
    std::vector<Rank> members;
    for (int i = 0; i < size; ++i)
      members.emplace_back(static_cast<std::size_t>(first + i * stride));
    groups.push_back(members);
  }
}

std::uint32_t count(const std::vector<std::uint32_t>& rounds) {
  return rounds.empty() ? 0 : 1 + *std::max_element(rounds.begin(), rounds.end());
}

void check_disjoint(const Groups& groups, const std::vector<std::uint32_t>& rounds) {
  REQUIRE(rounds.size() == groups.size());
  std::set<std::pair<std::uint32_t, Rank>> taken;
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const Rank rank : groups[g]) CHECK(taken.insert({rounds[g], rank}).second);
}

}  // namespace

TEST_CASE("groups that partition the ranks share a round") {
  // 2048 ranks: tensor groups of 8, context groups of 2 across them, data groups of 128: each of
  // the three kinds partitions the ranks, and a rank is in one of each.
  Groups groups;
  add_spaced(groups, 2048, 8, 1);
  add_spaced(groups, 2048, 2, 8);
  add_spaced(groups, 2048, 128, 16);
  const auto rounds = group_rounds(groups);
  CHECK(count(rounds) == 3);
  check_disjoint(groups, rounds);
}

TEST_CASE("groups without a common rank share rounds, other groups do not") {
  // Ranks 0..3 and 4..9 have modules of their own; the pairs 3-4 and 0-9 join them: a third group
  // of those ranks.
  Groups groups{{Rank(0), Rank(1)}, {Rank(2), Rank(3)},          {Rank(0), Rank(2)},
                {Rank(1), Rank(3)}, {Rank(4), Rank(5), Rank(6)}, {Rank(7), Rank(8), Rank(9)},
                {Rank(4), Rank(7)}, {Rank(6), Rank(9)},          {Rank(3), Rank(4)},
                {Rank(0), Rank(9)}};
  CHECK(group_rounds(groups) == std::vector<std::uint32_t>{0, 0, 1, 1, 0, 0, 1, 1, 2, 2});
  CHECK(group_rounds({}).empty());
}

TEST_CASE("a rank in 130 groups has 130 rounds") {  // of 64 bits a word
  Groups groups;
  for (std::size_t g = 0; g < 130; ++g) groups.push_back({Rank(0), Rank(g + 1)});
  const auto rounds = group_rounds(groups);
  for (std::uint32_t g = 0; g < 130; ++g) CHECK(rounds[g] == g);
}

TEST_CASE("pairs need fewer rounds than twice the largest number of groups of a rank") {
  // Each pair meets at most degree - 1 others at either end: first fit needs no more than 2 degree
  // - 1 rounds.
  std::mt19937 random(1);
  for (int trial = 0; trial < 20; ++trial) {
    Groups groups;
    std::vector<int> degree(64);
    for (int pair = 0; pair < 400; ++pair) {
      const std::size_t a = random() % 64, b = random() % 64;
      if (a == b) continue;
      groups.push_back({Rank(a), Rank(b)});
      ++degree[a];
      ++degree[b];
    }
    const auto rounds = group_rounds(groups);
    check_disjoint(groups, rounds);
    const int most = *std::max_element(degree.begin(), degree.end());
    CHECK(count(rounds) >= static_cast<std::uint32_t>(most));
    CHECK(count(rounds) <= static_cast<std::uint32_t>(2 * most - 1));
  }
}
