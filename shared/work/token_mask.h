// Which tokens of a packed axis see which others, and where on the plane of queries and keys that is.
//   Tokens alike stand in runs. A token sees itself; what stands before it of the groups that it
//   attends, its own among them; and, unless it is causal, what stands behind it of its own.
//   window w > 0: of these only those nearer than w, |q − k| < w.
// Lowered to rectangles, of which some diagonals may be left out: full ones and causal ones are what
// any attention kernel takes, and two parts of a query's keys are joined by their log-sum-exps. Only
// the edge of a window needs a bitmap. What nobody sees is in no rectangle.
// Costs: interleaved runs of one group that sees itself both ways make a rectangle for each two.
// Source: Cornstarch's bitfield (ICML 2026, §4.2: a group, a causal flag and attended groups a
// token); groups by number in place of bits, and rectangles, are ours.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/work/interval.h"

namespace polyphony {

struct MaskRun {
  Interval tokens;  // of the packed axis
  int group = 0;
  bool causal = true;
  Interval attends{0, 1};  // groups
  bool operator==(const MaskRun&) const = default;
};

struct TokenMask {
  std::vector<MaskRun> runs;  // ascending, without gaps
  int groups = 0;             // all are below

  std::int64_t tokens() const { return runs.empty() ? 0 : runs.back().tokens.end; }
  // Behind the last; a run like the last one makes it longer.
  void add(std::int64_t tokens, int group, bool causal, Interval attends);
  bool operator==(const TokenMask&) const = default;
};

// Pairs of a query q and a key k with least ≤ k − q ≤ most.
struct Rectangle {
  Interval queries, keys;
  std::int64_t least = 0, most = 0;
  auto operator<=>(const Rectangle&) const = default;
};
Rectangle full_rectangle(Interval queries, Interval keys);

enum class Filling : std::uint8_t { none, full, causal, bitmap };
// causal: of the same tokens, each with those before it: the lower left half with the diagonal.
Filling filling(const Rectangle& rectangle);
std::int64_t pairs(const Rectangle& rectangle);
// The part of these queries and keys, without rows and columns that have no pair.
Rectangle cut(const Rectangle& rectangle, Interval queries, Interval keys);

// Run by run in order; they do not overlap.
std::vector<Rectangle> rectangles(const TokenMask& mask, std::int64_t window = 0);
// The same pairs in rectangles of one filling each: full or causal; a bitmap for the edges of
// windows, of at most a window's queries.
std::vector<Rectangle> kernel_rectangles(const Rectangle& rectangle);
// Of the queries of an interval; `all` as rectangles() makes them.
std::int64_t pairs(const std::vector<Rectangle>& all, Interval queries);

}  // namespace polyphony
