// Divides the tokens of a language microbatch over context-parallel ranks (TokenAssignment).
//   contiguous  Equal runs, in order.
//   zigzag    2n equal runs; rank r of n has runs r and 2n − 1 − r.
//   balanced  Blocks of equally many tokens, those with much attention cut finer. The most
//             expensive block first goes to the rank with the least so far. This evens out
//             attention, and also attention and linear work together. Memory grows with tokens, of
//             which no rank gets more than kMostTokens times the mean.
//   random    Blocks of equally many tokens, as many to each rank, in a random order that depends
//             only on the number of tokens.
//
// Sources: Cornstarch (ICML 2026, §3.2.1) assigns blocks by attention alone, however many tokens a
// rank gets; counting linear work and limiting tokens are ours. Longest first is at most 4/3 of the
// optimum (Graham, SIAM J. Appl. Math. 17, 1969); here at most 1 + 1/8 if no rank is full, because
// no block costs more than 1/8 of a rank's share.
#pragma once

#include <vector>

#include "shared/model/layout.h"
#include "shared/work/token_mask.h"

namespace polyphony {

inline constexpr double kMostTokens = 1.25;  // most tokens of a rank, in multiples of the mean

// FLOPs of all blocks of a language module:
struct TokenCosts {
  double pair = 1;         // per query and key that it attends to, in blocks with full samples
  double window_pair = 0;  // the same in blocks with a sliding window
  double token = 0;        // everything else, per token: matrices, experts and routers included
};

struct TokenBlock {
  Interval tokens;
  double attention = 0, cost = 0;  // FLOPs; cost: attention and everything else
};
// Returns the rank of each block. The largest block first goes to the rank that has the least at
// that point, among those with room for its tokens. The size of a block or load is the larger of
// two shares: of all attention, and of all cost. Ties go to the first rank.
std::vector<std::size_t> assign_blocks(const std::vector<TokenBlock>& blocks, int ranks,
                                       std::int64_t most_tokens);

// Returns, by rank, ascending intervals of the packed token axis of `mask`; together they cover the
// axis. `window`: number of tokens that one token attends to in blocks with a sliding window.
std::vector<std::vector<Interval>> divide_tokens(TokenAssignment policy, const TokenMask& mask,
                                                 std::int64_t window, int ranks,
                                                 const TokenCosts& costs);

}  // namespace polyphony
