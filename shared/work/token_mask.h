// Attention masks of packed sequences: which tokens attend to which, and the rectangles of the
// query-key plane that this covers.
//   A mask is a list of runs of tokens with the same properties: a group, a causal flag and the
//   groups that the run attends to. A token attends to
//     itself,
//     every earlier token whose group is among those that its run attends to (including its own),
//     and, unless it is causal, every later token of its own group.
//   With a window w > 0, only those of these keys with |q − k| < w remain.
//
// The mask is lowered to rectangles, each restricted to a band of diagonals. Full and causal
// rectangles suit any attention kernel, and partial results for the same query are merged by their
// log-sum-exps. Only the edges of a window need a bitmap. Pairs that are masked out are in no
// rectangle.
//
// Cost: n interleaved runs of a group that attends to itself in both directions produce a rectangle
// for every pair of runs.
// Source: Cornstarch's bitfield attention mask (ICML 2026, §4.2: a group, a causal flag and
// attended groups per token); group numbers in place of bits, and the rectangles, are our own.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/work/interval.h"

namespace polyphony {

struct MaskRun {
  Interval tokens;  // positions on the packed axis
  int group = 0;
  bool causal = true;
  Interval attends{0, 1};  // groups that the run attends to, its own among them
  bool operator==(const MaskRun&) const = default;
};

struct TokenMask {
  std::vector<MaskRun> runs;  // ascending, without gaps
  int groups = 0;             // number of groups: every group is below it

  std::int64_t tokens() const { return runs.empty() ? 0 : runs.back().tokens.end; }
  // Appends a run. If it has the same properties as the last run, extends that one instead. Fails a
  // CHECK if the group does not attend to itself.
  void add(std::int64_t tokens, int group, bool causal, Interval attends);
  bool operator==(const TokenMask&) const = default;
};

// The pairs of a query q and a key k in these intervals with least ≤ k − q ≤ most.
struct Rectangle {
  Interval queries, keys;
  std::int64_t least = 0, most = 0;
  auto operator<=>(const Rectangle&) const = default;
};
// Returns the rectangle with all pairs of these queries and keys.
Rectangle full_rectangle(Interval queries, Interval keys);

enum class Filling : std::uint8_t { none, full, causal, bitmap };
// Returns which kind of attention kernel the rectangle needs. Causal means that queries and keys
// are the same tokens and each attends to itself and to those before it.
Filling filling(const Rectangle& rectangle);
// Returns the number of query-key pairs in the rectangle.
std::int64_t pairs(const Rectangle& rectangle);
// Returns the intersection with these queries and keys, without rows and columns that have no pair.
Rectangle cut(const Rectangle& rectangle, Interval queries, Interval keys);

// Lowers a mask to disjoint rectangles, in the order of its runs.
std::vector<Rectangle> rectangles(const TokenMask& mask, std::int64_t window = 0);
// Splits a rectangle into parts with the same pairs, each of them full or causal. The edges of
// windows become bitmaps of at most one window of queries.
std::vector<Rectangle> kernel_rectangles(const Rectangle& rectangle);
// Returns the number of pairs whose query is in the interval; `all` comes from rectangles().
std::int64_t pairs(const std::vector<Rectangle>& all, Interval queries);

}  // namespace polyphony
