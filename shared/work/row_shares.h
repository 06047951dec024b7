// The rows of a microbatch that one rank holds between blocks under sequence parallelism. Of R
// rows, member t of n tensor-parallel ranks has
//   [min(R, t·q), min(R, (t+1)·q)),   q = ⌈R/n⌉
// so the last members may have fewer rows, or none. All-gathers and reduce-scatters move n·q rows
// in equal parts, the last of them padded; layers never see the padding.
// Source: own definition; the rows are split as in Korthikanti et al., arXiv 2205.05198, §4.2.2.
#pragma once

#include <algorithm>
#include <cstdint>

namespace polyphony {

struct RowShares {
  std::int64_t rows = 0;  // R
  int members = 1;        // n

  constexpr std::int64_t share() const { return (rows + members - 1) / members; }  // q
  constexpr std::int64_t padded() const { return share() * members; }              // n·q
  constexpr std::int64_t begin(int member) const { return std::min(rows, member * share()); }
  constexpr std::int64_t count(int member) const { return begin(member + 1) - begin(member); }
};

}  // namespace polyphony
