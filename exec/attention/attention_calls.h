// Which attention calls make the attention of some queries to some keys: a stock kernel for every
// rectangle of their mask (shared/work/token_mask.h), full, causal or with a bitmap; on devices one for many of them
// (exec/attention/packed_calls.h). Whoever has the
// keys: all of them at once, or those of one rank after another, whose results their log-sum-exps join.
#pragma once

#include <vector>

#include "exec/torch_pch.h"
#include "shared/model/layout.h"
#include "shared/work/token_mask.h"

namespace polyphony::exec {

// What a layout says of a module's attention (shared/model/layout.h).
struct AttentionWay {
  ContextAttention context = ContextAttention::all_gather;
  std::int64_t heads = 0;  // key/value heads that are gathered at a time; 0: all
  std::int64_t row_split = 0;
};

struct AttentionCall {
  Interval queries, keys;  // rows of the tensors
  Filling filling = Filling::full;
  // Of a bitmap: pairs attend whose key, counted from the call's first, is so much behind its query.
  std::int64_t least = 0, most = 0;
};

// Queries and keys stand in their tensors as these intervals of the mask's axis do, one behind the
// other, ascending. Calls come in the order of their queries; a query that sees none of the keys is
// in none.
std::vector<AttentionCall> plan_calls(const std::vector<Rectangle>& rectangles,
                                      const std::vector<Interval>& queries,
                                      const std::vector<Interval>& keys);
// Without cutting bands into stock parts: `filling` is not said, the diagonals always are. Where a window lets few keys
// be seen by many queries, those that see all of them go apart, so that no band has more queries than it has keys and
// one.
std::vector<AttentionCall> plan_bands(const std::vector<Rectangle>& rectangles,
                                      const std::vector<Interval>& queries,
                                      const std::vector<Interval>& keys);
// Of sequences side by side, all of `length`; causal with a window of so many rows, 0: of all.
std::vector<AttentionCall> plan_calls(std::int64_t length, bool causal, std::int64_t window,
                                      std::int64_t row_split);
// The axis in pieces of at most `row_split`, a call of its own each (ModuleLayout::row_split); 0: whole.
std::vector<Interval> key_pieces(std::int64_t tokens, std::int64_t row_split);

// [queries, keys] of one call: 0, or −∞.
torch::Tensor bitmap(const AttentionCall& call, const torch::TensorOptions& format);

}  // namespace polyphony::exec
