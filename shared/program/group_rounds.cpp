#include "shared/program/group_rounds.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace polyphony {

std::vector<std::uint32_t> group_rounds(const std::vector<std::vector<Rank>>& groups) {
  using Busy = std::vector<std::uint64_t>;  // one bit per round
  constexpr std::size_t kBits = 64;
  std::vector<Busy> busy;  // by rank
  std::vector<std::uint32_t> rounds;
  for (const std::vector<Rank>& members : groups) {
    Busy taken;
    for (const Rank rank : members) {
      if (rank.value >= busy.size()) busy.resize(rank.value + std::size_t{1});
      const Busy& own = busy[rank.value];
      if (taken.size() < own.size()) taken.resize(own.size());
      for (std::size_t word = 0; word < own.size(); ++word) taken[word] |= own[word];
    }
    std::size_t word = 0;
    while (word < taken.size() && taken[word] == ~std::uint64_t{0}) ++word;
    const std::uint64_t bits = word < taken.size() ? taken[word] : 0;
    const int free = std::countr_one(bits);
    for (const Rank rank : members) {
      Busy& own = busy[rank.value];
      if (own.size() <= word) own.resize(word + 1);
      own[word] |= std::uint64_t{1} << free;
    }
    rounds.push_back(static_cast<std::uint32_t>(word * kBits) + static_cast<std::uint32_t>(free));
  }
  return rounds;
}

}  // namespace polyphony
