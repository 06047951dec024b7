// Plans the kernel calls for the attention of some queries to some keys: one library kernel per
// rectangle of their mask (shared/work/token_mask.h), which is full, causal, or described by a
// bitmap. On devices one call covers many rectangles (exec/attention_calls/packed_calls.h).
//
// The keys may be all keys at once, or those of one context rank after another; results for
// different keys are combined with their log-sum-exps.
#pragma once

#include <vector>

#include "exec/torch_pch.h"
#include "shared/model/layout.h"
#include "shared/work/token_mask.h"

namespace polyphony::exec {

// The settings of a module's attention in the layout (shared/model/layout.h).
struct AttentionWay {
  ContextAttention context = ContextAttention::all_gather;
  std::int64_t heads = 0;  // key/value heads that are gathered at a time; 0: all
  std::int64_t row_split = 0;
};

struct AttentionCall {
  Interval queries, keys;  // rows of the tensors
  Filling filling = Filling::full;
  // For a bitmap: query i attends to key j, both counted from the call's first, if least ≤ j − i ≤
  // most.
  std::int64_t least = 0, most = 0;
};

// Returns the calls for the mask's rectangles, in the order of their queries. The tensors hold the
// rows of the intervals `queries` and `keys` of the mask's axis, one after another, ascending. A
// query that attends to none of the keys is in no call.
std::vector<AttentionCall> plan_calls(const std::vector<Rectangle>& rectangles,
                                      const std::vector<Interval>& queries,
                                      const std::vector<Interval>& keys);
// Does the same without cutting bands into parts that the stock kernels support: `least` and `most`
// are always set, and `filling` is not. Where a window makes many queries attend to all of a few
// keys, those queries get a call of their own, so that no band has more queries than its keys plus
// one.
std::vector<AttentionCall> plan_bands(const std::vector<Rectangle>& rectangles,
                                      const std::vector<Interval>& queries,
                                      const std::vector<Interval>& keys);
// Returns the calls for a batch of sequences that all have `length` rows. `window`: rows that a
// causal row attends to (0: all).
std::vector<AttentionCall> plan_calls(std::int64_t length, bool causal, std::int64_t window,
                                      std::int64_t row_split);
// Cuts the key axis into chunks of at most `row_split` keys, each for a call of its own
// (ModuleLayout::row_split); 0: one chunk.
std::vector<Interval> key_pieces(std::int64_t tokens, std::int64_t row_split);

// Returns the additive mask of one call, [queries, keys]: 0 where a query attends to a key, else
// −∞.
torch::Tensor bitmap(const AttentionCall& call, const torch::TensorOptions& format);

}  // namespace polyphony::exec
