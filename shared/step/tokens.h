// How the tokens of a work item are dealt to context-parallel ranks (TokenAssignment).
//   balanced: blocks of equally many tokens, those of much attention cut finer, the largest first to
//   the rank with the least so far: attention is even, and so is attention with linear work. Memory
//   goes with tokens, of which no rank takes more than kMostTokens times the mean.
//   random: blocks of equally many tokens, as many to each rank, by chance that depends on the number
//   of tokens alone.
// Source: Cornstarch (ICML 2026, §3.2.1) deals blocks of attention alone, whatever tokens that makes;
// linear work and the bound of tokens are ours. Longest first is at most 4/3 of the best (Graham,
// SIAM J. Appl. Math. 17, 1969), here (1 + 1/8) with room to spare: no block costs more than 1/8 of a share.
#pragma once

#include <vector>

#include "shared/model/layout.h"
#include "shared/work/token_mask.h"

namespace polyphony {

inline constexpr double kMostTokens = 1.25;  // of a rank, in means

// FLOPs of all blocks of a language module.
struct TokenCosts {
  double pair = 1;         // a query and a key that it sees, in blocks that see whole samples
  double window_pair = 0;  // likewise in blocks with a window
  double token = 0;        // all else: matrices, experts and routers among them
};

struct TokenBlock {
  Interval tokens;
  double attention = 0, cost = 0;  // cost: attention and all else
};
// The rank of each block: the largest first, to the rank with room that has the least then. Sizes and
// loads are the larger of two shares, that of all attention and that of all cost. Of equals the first.
std::vector<std::size_t> deal_blocks(const std::vector<TokenBlock>& blocks, int ranks,
                                     std::int64_t most_tokens);

// Intervals of the packed axis that `mask` is of, ascending, by rank; together they are the axis.
// window: tokens that one sees in blocks with a window.
std::vector<std::vector<Interval>> deal_tokens(TokenAssignment policy, const TokenMask& mask,
                                               std::int64_t window, int ranks,
                                               const TokenCosts& costs);

}  // namespace polyphony
