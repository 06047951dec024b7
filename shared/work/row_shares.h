// Which rows of a work item a rank holds between blocks under sequence parallelism: of R rows,
// member t of n tensor-parallel ranks has
//   [min(R, t·q), min(R, (t+1)·q)),   q = ⌈R/n⌉
// so the last members may have fewer, or none. Gathers and scatters move n·q rows, equal parts, the
// last of them padded; no layer sees the padding. Source: own definition; the rows themselves are
// cut as in Korthikanti et al., arXiv 2205.05198, §4.2.2.
#pragma once

#include <algorithm>
#include <cstdint>

namespace polyphony {

struct RowShares {
  std::int64_t rows = 0;  // R
  int members = 1;        // n

  constexpr std::int64_t share() const { return (rows + members - 1) / members; }  // q
  constexpr std::int64_t padded() const { return share() * members; }
  constexpr std::int64_t begin(int member) const { return std::min(rows, member * share()); }
  constexpr std::int64_t count(int member) const { return begin(member + 1) - begin(member); }
};

}  // namespace polyphony
