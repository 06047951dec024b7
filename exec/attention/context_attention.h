// Attention when the tokens of a sequence are dealt over the ranks of a context group.
//   T rows here, G of the whole group, K key/value heads of width D on this rank. A rank may hold
//   any of a sample's positions, in increasing order of sample and position, or none at all.
//   Keys and values are gathered after RoPE, [G, 2·K·D]; queries stay, and see what the work's mask
//   says (WorkInput::mask; without one what is not behind them in their sample). The backward sums the gradients of keys and
//   values over the group and scatters them. Gathered keys and values are kept for the backward, but
//   where they come some heads at a time (exec/attention/head_groups.h).
//   Attention calls for the rectangles of the mask that this rank's runs of queries cut out
//   (exec/attention/attention_calls.h, exec/attention/packed_calls.h).
// Source: gathered keys and values as in Grattafiori et al., arXiv 2407.21783, §3.3.2.
#pragma once

#include <memory>

#include "exec/attention/attention.h"
#include "exec/attention/ring_attention.h"
#include "exec/autograd/linear.h"
#include "exec/work_input.h"

namespace polyphony::exec {

struct ContextPlan {
  SequencePlan::Bucket rows;  // this rank's, as one sequence
  std::shared_ptr<const RowExchange> gather;
  torch::Tensor order;  // [G] gathered row of each row by sample and position; undefined: the same
  torch::Tensor inverse;  // [G]
  AttentionCalls calls;   // of queries here and keys by sample and position
  // Set: keys are not gathered before attention, they come by, or so many heads of them at a time.
  std::shared_ptr<const KeyRing> ring;
  std::int64_t heads = 0;
  bool comes_by() const { return ring || heads > 0; }
};

// The rows of a group, gathered rank after rank, by sample and position: gathered row of each [G], and its
// inverse; undefined: they are in order.
struct GatheredOrder {
  torch::Tensor order, inverse;
};
GatheredOrder order_gathered(const WorkInput& data);

// `angles` [T, D/2]: exec/attention/rotary.h. `window`: keys that a query sees; 0: all before it.
std::shared_ptr<const ContextPlan> plan_context(const WorkInput& data, InnerGroup& context,
                                                const torch::Tensor& angles, torch::Dtype dtype,
                                                AttentionWay way, std::int64_t window = 0);

// attention() of exec/attention/attention.h in two steps: qkv [T, K·(g+2)·D] -> rotated queries of this rank
// [K, g, T, D], and keys and values of all ranks, by sample and position, or this rank's where the others'
// come by; these -> [T, K·g·D].
struct GatheredHeads {
  torch::Tensor queries, keys;
};
GatheredHeads gather_keys(const torch::Tensor& qkv, const ContextPlan& plan,
                          const HeadShape& heads);
torch::Tensor context_attention(const GatheredHeads& gathered,
                                const std::shared_ptr<const ContextPlan>& plan,
                                const HeadShape& heads, const torch::Tensor& sinks = {});

}  // namespace polyphony::exec
