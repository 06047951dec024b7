#include "shared/step/tokens.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "shared/error.h"
#include "shared/random.h"

namespace polyphony {
namespace {

using TokenRuns = std::vector<std::vector<Interval>>;

constexpr std::int64_t kBlocksPerRank = 16;  // finer blocks gain little and fragment the rows
constexpr double kMostCost = 2;  // a block that costs more, in multiples of the mean, is cut

void append(std::vector<Interval>& list, Interval interval) {
  if (interval.size() == 0) return;
  if (!list.empty() && list.back().end == interval.begin)
    list.back().end = interval.end;
  else
    list.push_back(interval);
}

std::vector<Interval> equal_blocks(Interval tokens, std::int64_t size) {
  std::vector<Interval> blocks;
  for (std::int64_t at = tokens.begin; at < tokens.end; at += size)
    blocks.push_back({at, std::min(tokens.end, at + size)});
  return blocks;
}

std::vector<Interval> equal_blocks(std::int64_t tokens, int ranks) {
  return equal_blocks({0, tokens}, std::max<std::int64_t>(1, tokens / (kBlocksPerRank * ranks)));
}

class Costs {
 public:
  Costs(const TokenMask& mask, std::int64_t window, const TokenCosts& costs)
      : costs_(costs), all_(rectangles(mask)) {
    if (costs.window_pair > 0 && window > 0) near_ = rectangles(mask, window);
  }
  TokenBlock of(Interval tokens) const {
    const double attention = costs_.pair * static_cast<double>(pairs(all_, tokens)) +
                             costs_.window_pair * static_cast<double>(pairs(near_, tokens));
    return {tokens, attention, attention + costs_.token * static_cast<double>(tokens.size())};
  }

 private:
  TokenCosts costs_;
  std::vector<Rectangle> all_, near_;
};

struct Load {
  double attention = 0, cost = 0;
};
Load sum_of(const std::vector<TokenBlock>& blocks) {
  Load sum;
  for (const TokenBlock& block : blocks) {
    sum.attention += block.attention;
    sum.cost += block.cost;
  }
  return sum;
}
// Returns the larger of two shares: of all attention, and of all cost.
double share(double attention, double cost, const Load& sum) {
  return std::max(sum.attention > 0 ? attention / sum.attention : 0,
                  sum.cost > 0 ? cost / sum.cost : 0);
}

std::vector<TokenBlock> costed_blocks(const TokenMask& mask, std::int64_t window, int ranks,
                                      const TokenCosts& costs) {
  const Costs cost(mask, window, costs);
  std::vector<TokenBlock> even, blocks;
  for (const Interval tokens : equal_blocks(mask.tokens(), ranks)) even.push_back(cost.of(tokens));
  const Load sum = sum_of(even);
  const double most = kMostCost / static_cast<double>(kBlocksPerRank * ranks);
  for (const TokenBlock& block : even) {
    const std::int64_t size = block.tokens.size();
    const double whole = share(block.attention, block.cost, sum);
    const auto pieces = std::min(size, static_cast<std::int64_t>(std::ceil(whole / most)));
    if (pieces <= 1) {
      blocks.push_back(block);
      continue;
    }
    for (const Interval part : equal_blocks(block.tokens, (size + pieces - 1) / pieces))
      blocks.push_back(cost.of(part));
  }
  return blocks;
}

// Returns blocks in the order of the axis.
TokenRuns by_rank(const std::vector<Interval>& blocks, const std::vector<std::size_t>& ranks,
                  std::size_t count) {
  TokenRuns assigned(count);
  for (std::size_t b = 0; b < blocks.size(); ++b) append(assigned[ranks[b]], blocks[b]);
  return assigned;
}

TokenRuns assign_randomly(std::int64_t tokens, int ranks) {
  const std::vector<Interval> blocks = equal_blocks(tokens, ranks);
  std::vector<std::size_t> order(blocks.size()), rank(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto draw = [&](std::size_t block) {
    return random_bits(static_cast<std::uint64_t>(tokens), block);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return draw(a) < draw(b); });
  for (std::size_t i = 0; i < order.size(); ++i)
    rank[order[i]] = i % static_cast<std::size_t>(ranks);
  return by_rank(blocks, rank, static_cast<std::size_t>(ranks));
}

TokenRuns assign_evenly(const TokenMask& mask, std::int64_t window, int ranks,
                        const TokenCosts& costs) {
  const std::vector<TokenBlock> blocks = costed_blocks(mask, window, ranks, costs);
  const double mean = static_cast<double>(mask.tokens()) / ranks;
  const std::vector<std::size_t> rank =
      assign_blocks(blocks, ranks, static_cast<std::int64_t>(std::ceil(kMostTokens * mean)));
  std::vector<Interval> tokens;
  for (const TokenBlock& block : blocks) tokens.push_back(block.tokens);
  return by_rank(tokens, rank, static_cast<std::size_t>(ranks));
}

}  // namespace

std::vector<std::size_t> assign_blocks(const std::vector<TokenBlock>& blocks, int ranks,
                                       std::int64_t most_tokens) {
  const Load sum = sum_of(blocks);
  std::vector<double> size(blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b)
    size[b] = share(blocks[b].attention, blocks[b].cost, sum);
  std::vector<std::size_t> order(blocks.size()), assigned(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return size[a] > size[b]; });
  struct Laden : Load {
    std::int64_t room = 0;
  };
  std::vector<Laden> loads(static_cast<std::size_t>(ranks), {{}, most_tokens});
  for (const std::size_t b : order) {
    const TokenBlock& block = blocks[b];
    std::optional<std::size_t> least;
    double least_share = 0;
    for (std::size_t r = 0; r < loads.size(); ++r) {
      if (loads[r].room < block.tokens.size()) continue;
      const double after =
          share(loads[r].attention + block.attention, loads[r].cost + block.cost, sum);
      if (least && after >= least_share) continue;
      least = r;
      least_share = after;
    }
    POLYPHONY_CHECK(least, "no rank has room for " << block.tokens.size() << " tokens");
    loads[*least].attention += block.attention;
    loads[*least].cost += block.cost;
    loads[*least].room -= block.tokens.size();
    assigned[b] = *least;
  }
  return assigned;
}

TokenRuns divide_tokens(TokenAssignment policy, const TokenMask& mask, std::int64_t window,
                        int ranks, const TokenCosts& costs) {
  const std::int64_t tokens = mask.tokens();
  TokenRuns assigned(static_cast<std::size_t>(ranks));
  switch (policy) {
    case TokenAssignment::contiguous:
      for (int r = 0; r < ranks; ++r)
        append(assigned[static_cast<std::size_t>(r)],
               {cut_begin(tokens, ranks, r), cut_begin(tokens, ranks, r + 1)});
      return assigned;
    case TokenAssignment::zigzag:
      for (int part = 0; part < 2 * ranks; ++part)
        append(assigned[static_cast<std::size_t>(std::min(part, 2 * ranks - 1 - part))],
               {cut_begin(tokens, 2 * ranks, part), cut_begin(tokens, 2 * ranks, part + 1)});
      return assigned;
    case TokenAssignment::balanced:
      return assign_evenly(mask, window, ranks, costs);
    case TokenAssignment::random:
      return assign_randomly(tokens, ranks);
  }
  return assigned;
}

}  // namespace polyphony
