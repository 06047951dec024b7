#include <doctest/doctest.h>

#include <algorithm>

#include "shared/rank_list.h"

using namespace polyphony;

namespace {

std::vector<Rank> ranks(const std::vector<std::size_t>& values) {
  std::vector<Rank> list;
  for (const std::size_t value : values) list.emplace_back(value);
  return list;
}

}  // namespace

TEST_CASE("a rank list has the ranks that it was made from, evenly spaced or not") {
  // Empty, one rank, ascending, descending, a rank twice, an irregular last rank.
  for (const auto& values : std::vector<std::vector<std::size_t>>{
           {}, {5}, {0, 1, 2}, {3, 7, 11, 15}, {9, 6, 3, 0}, {4, 4}, {0, 2, 3}, {7, 1, 4}}) {
    const std::vector<Rank> wanted = ranks(values);
    const RankList list(wanted);
    REQUIRE(list.size() == wanted.size());
    CHECK(std::vector<Rank>(list) == wanted);
    CHECK(std::equal(list.begin(), list.end(), wanted.begin(), wanted.end()));
    for (std::size_t rank = 0; rank < 20; ++rank) {
      const auto found = std::find(wanted.begin(), wanted.end(), Rank(rank));
      CAPTURE(rank);
      CHECK(list.find(Rank(rank)).value_or(99) ==
            (found == wanted.end() ? 99 : static_cast<std::size_t>(found - wanted.begin())));
    }
    if (values.empty()) continue;
    CHECK(list.front() == wanted.front());
    CHECK(list.back() == wanted.back());
  }
}

TEST_CASE("equal rank lists compare equal however they were made") {
  CHECK(RankList::spaced(Rank(3), 4, 3) == RankList(ranks({3, 7, 11})));
  CHECK(RankList::spaced(Rank(3), 4, 1) == RankList(ranks({3})));
  CHECK_FALSE(RankList::spaced(Rank(3), 4, 3) == RankList(ranks({3, 7, 12})));
  CHECK_FALSE(RankList::spaced(Rank(3), 4, 3) == RankList::spaced(Rank(3), 4, 2));
}
