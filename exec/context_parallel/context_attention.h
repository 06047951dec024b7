// Attention when the tokens of a sequence are distributed over the ranks of a context group
// (context parallelism).
//   T rows on this rank, G rows on the whole group; K key/value heads of width D on this rank. A
//   rank may have any of a sample's positions, in increasing order of sample and position, or none
//   at all.
//
// Keys and values are gathered after RoPE, [G, 2·K·D]. Queries stay on their rank, and attend as
// the microbatch's mask states (WorkInput::mask; without one, causally within their sample). The
// calls are those for the parts of the mask's rectangles that belong to this rank's queries
// (exec/attention_calls/attention_calls.h, exec/attention_calls/packed_calls.h).
//
// The backward pass sums the gradients of keys and values over the group and scatters them.
// Gathered keys and values are saved for it, except where they are gathered some heads at a time
// (exec/context_parallel/head_groups.h) or passed around a ring
// (exec/context_parallel/ring_attention.h).
//
// Source: gathered keys and values as in Grattafiori et al., arXiv 2407.21783, §3.3.2.
#pragma once

#include <memory>

#include "exec/attention/attention.h"
#include "exec/autograd/linear.h"
#include "exec/context_parallel/ring_attention.h"
#include "exec/work_input.h"

namespace polyphony::exec {

struct ContextPlan {
  SequencePlan::Bucket rows;  // this rank's rows, as one sequence
  std::shared_ptr<const RowExchange> gather;
  // [G] the gathered row of each row in order of sample and position; undefined: same order
  torch::Tensor order;
  torch::Tensor inverse;  // [G] the inverse permutation
  AttentionCalls calls;   // for this rank's queries, and keys in order of sample and position
  // If set, keys are not gathered before attention: they are passed around a ring, or gathered
  // `heads` heads at a time.
  std::shared_ptr<const KeyRing> ring;
  std::int64_t heads = 0;
  bool comes_by() const { return ring || heads > 0; }
};

// The permutation between the rows of a group as gathered, rank after rank, and in order of sample
// and position: the gathered row of each [G], and its inverse. Undefined: the two orders are the
// same.
struct GatheredOrder {
  torch::Tensor order, inverse;
};
GatheredOrder order_gathered(const WorkInput& data);

// Plans the attention of a microbatch. `angles` [T, D/2]: see exec/attention/rotary.h. `window`:
// keys that a query attends to (0: all up to itself).
std::shared_ptr<const ContextPlan> plan_context(const WorkInput& data, InnerGroup& context,
                                                const torch::Tensor& angles, torch::Dtype dtype,
                                                AttentionWay way, std::int64_t window = 0);

// attention() of exec/attention/attention.h in two steps. gather_keys() turns qkv [T, K·(g+2)·D]
// into the rotated queries of this rank [K, g, T, D], and the keys and values of all ranks in order
// of sample and position (of this rank only, if ContextPlan::comes_by()). context_attention() turns
// these into the output [T, K·g·D].
struct GatheredHeads {
  torch::Tensor queries, keys;
};
GatheredHeads gather_keys(const torch::Tensor& qkv, const ContextPlan& plan,
                          const HeadShape& heads);
torch::Tensor context_attention(const GatheredHeads& gathered,
                                const std::shared_ptr<const ContextPlan>& plan,
                                const HeadShape& heads, const torch::Tensor& sinks = {});

}  // namespace polyphony::exec
