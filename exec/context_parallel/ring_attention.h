// Ring attention: the keys and values of the context ranks (one block per rank) are passed around
// the group. Each rank attends to the block that it currently has, sends that block to the next
// rank meanwhile (exec/autograd/beside.h), and combines the results of all blocks with their
// log-sum-exps.
//
// In the backward pass blocks travel the same way, and the sum of a block's gradients follows its
// block one step behind, overlapped with the attention to the next block; only its last transfer is
// not overlapped. It ends at the rank that owns the block, which adds its own contribution. So
// blocks and gradients each cross one link fewer than there are ranks.
//   queries [K, g, T, D] stay; keys and values of a rank as rows, [its tokens, 2·K·D]
//   Gradients travel in the format of sums (fp32 or wider).
// Source: Liu et al., arXiv 2310.01889.
#pragma once

#include <vector>

#include "exec/attention/attention.h"
#include "exec/attention_calls/heads_attention.h"
#include "exec/autograd/inner_groups.h"

namespace polyphony::exec {

struct KeyRing {
  InnerGroup& group;
  std::vector<std::int64_t> counts;   // rows of each rank
  std::vector<AttentionCalls> calls;  // of this rank's queries, indexed by the keys' rank
};

// Returns `queries` together with the keys and values in `rows` [rows, 2·K·D], as heads.
HeadTensors with_keys(const torch::Tensor& queries, const torch::Tensor& rows,
                      const HeadShape& heads);
// Returns the gradients of keys and values as rows.
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
