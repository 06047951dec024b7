// How the tokens of a work item are dealt to context-parallel ranks (TokenAssignment).
//   balanced: blocks of tokens, each costing its query-key pairs plus kLinearPairs per token (what
//   the linear layers do, said in pairs), the dearest first to the rank with the least so far.
// Source: Cornstarch's block assignment (arXiv 2503.11367) deals blocks by attention alone; the
// linear term is ours.
#pragma once

#include <vector>

#include "shared/layers/parameters.h"
#include "shared/model/layout.h"

namespace polyphony {

// `lengths`: tokens of each sample on the packed axis. Intervals of that axis, ascending, by rank;
// together they are the axis.
std::vector<std::vector<Interval>> deal_tokens(TokenAssignment policy,
                                               const std::vector<std::int64_t>& lengths, int ranks,
                                               double linear_pairs);

}  // namespace polyphony
