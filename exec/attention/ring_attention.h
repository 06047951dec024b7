// Ring attention: the keys and values of a context group's ranks come by one after another. Each rank
// attends to the block that it holds, passes it on meanwhile (exec/autograd/beside.h), and joins what the blocks gave by
// their log-sum-exps; in the backward the sum of a block's gradients follows it one rank behind, from the first that is
// not its own: beside the attention to the next block, the last time alone. It ends where the block came from, whose own
// part is added there. So each goes over one link fewer than there are ranks.
//   queries [K, g, T, D] stay; keys and values of a rank as rows, [its tokens, 2·K·D]
//   Gradients go round in the format of sums (fp32 at least).
// Source: Liu et al., arXiv 2310.01889.
#pragma once

#include <vector>

#include "exec/attention/heads_attention.h"
#include "exec/autograd/inner_groups.h"

namespace polyphony::exec {

struct KeyRing {
  InnerGroup& group;
  std::vector<std::int64_t> counts;   // rows of each rank
  std::vector<AttentionCalls> calls;  // by rank whose keys they are: queries are this rank's
};

// [rows, 2·K·D] as heads beside `queries`.
HeadTensors with_keys(const torch::Tensor& queries, const torch::Tensor& rows,
                      const HeadShape& heads);
// Gradients of keys and values as rows.
torch::Tensor key_rows(const HeadTensors& gradients);

Attended attend_round(const KeyRing& ring, const torch::Tensor& queries, const torch::Tensor& keys,
                      const HeadShape& heads);
struct RoundGradients {
  torch::Tensor queries, keys;
};
RoundGradients attend_round_backward(const KeyRing& ring, const torch::Tensor& dy,
                                     const torch::Tensor& queries, const torch::Tensor& keys,
                                     const Attended& attended, const HeadShape& heads);

}  // namespace polyphony::exec
