// Attention over packed sequences of unequal length, with rotary positions (RoPE), grouped queries,
// sliding windows and attention sinks.
//   qkv [T, K·(g+2)·D]: for each of the K key/value heads on this rank, its g query heads, k, v
//   out [T, K·g·D]
//
// On CPUs, sequences are gathered into buckets [count, L]. Bidirectional sequences of a bucket have
// equal lengths. Causal ones are padded at the right, which needs no mask: no valid query sees the
// padding, and the padding's own output rows are dropped, with zero gradient. On devices all rows
// form one bucket, and the attention calls know where sequences end.
//
// RoPE pairs element i of a head with i + D/2 (Hugging Face's Llama layout);
// exec/attention/rotary.h computes the angles. A sliding window of w lets a causal row attend to
// the w rows that end with itself. A sink is one extra score per query head, without a key or a
// value, that takes part in the softmax.
//
// Sources: windows, Beltagy et al., arXiv 2004.05150, §3.1; sinks, Xiao et al., arXiv 2309.17453,
// learned as in GPT-OSS (arXiv 2508.10925).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/attention_calls/head_tensors.h"
#include "exec/attention_calls/packed_calls.h"
#include "exec/torch_pch.h"

namespace polyphony::exec {

struct ContextPlan;  // exec/context_parallel/context_attention.h
class HeadExchange;  // exec/context_parallel/head_exchange.h

// How the attention of one forward pass is computed: computed once, and shared by all its blocks.
struct SequencePlan {
  struct Bucket {
    std::int64_t rows = 0;     // valid rows, without padding
    std::int64_t count = 0;    // sequences
    std::int64_t longest = 0;  // L
    torch::Tensor padded;      // [count·L] row of each place, or `rows`; undefined: no padding
    torch::Tensor valid;       // [rows] place of each row in count·L; undefined: no padding
    torch::Tensor cosine;      // [count, 1, 1, L, D]; undefined: no RoPE
    torch::Tensor sine;        // the same shape; negated in the first half
  };
  std::vector<Bucket> buckets;
  torch::Tensor order;    // [T] packed row of each row in bucket order; undefined: same order
  torch::Tensor inverse;  // [T] the inverse permutation
  bool causal = false;
  std::int64_t window = 0;     // if causal: rows that a row attends to, with itself; 0: all
  std::int64_t row_split = 0;  // most keys of a row in one call; 0: all
  // Set for a general mask and on devices: the calls over all rows, which are one sequence in one
  // bucket. Null: one call per bucket.
  std::shared_ptr<const AttentionCalls> calls;
  // Set on a device if the module has layers that read earlier rows of a sample
  // (exec/mixers/causal_convolution.h): the samples as padded rows of a batch.
  std::shared_ptr<const SequencePlan> side_by_side;
  std::shared_ptr<const ContextPlan> context;  // set: replaces all members above
  // Set for context parallelism by heads: then the members above describe the rows of all ranks,
  // which each rank rotates (RoPE) before it sends them. `own`: this rank's rows as one sequence.
  std::shared_ptr<const HeadExchange> heads;
  Bucket own;
};

// Returns the mask of packed sequences that do not attend to each other.
TokenMask mask_of(const std::vector<std::int64_t>& lengths, bool causal);
// Plans bidirectional attention within each sequence, without RoPE.
SequencePlan plan_images(const std::vector<std::int64_t>& lengths, torch::Device device);
// Plans causal attention within each sequence. `window`: rows that a row attends to, with itself
// (0: all). `row_split`: most keys in one call (0: all). The first overload has no RoPE; the second
// rotates by `angles` [T, D/2] (exec/attention/rotary.h), whose rows are in packed order.
SequencePlan plan_causal(const std::vector<std::int64_t>& lengths, torch::Device device,
                         std::int64_t window = 0, std::int64_t row_split = 0);
SequencePlan plan_causal(const std::vector<std::int64_t>& lengths, const torch::Tensor& angles,
                         torch::Dtype dtype, std::int64_t window = 0, std::int64_t row_split = 0);
// Plans attention with a general mask, without RoPE; `window` and `row_split` as above.
SequencePlan plan_masked(const TokenMask& mask, std::int64_t window, std::int64_t row_split,
                         torch::Device device);
// Plans padded buckets on any device, without RoPE and without attention calls.
SequencePlan plan_side_by_side(const std::vector<std::int64_t>& lengths, torch::Device device);
// Returns a bucket of one sequence of `rows` rows, without padding.
SequencePlan::Bucket one_sequence(std::int64_t rows);
// Returns the attention calls of one bucket of the plan.
std::shared_ptr<const AttentionCalls> calls_of(const SequencePlan& plan,
                                               const SequencePlan::Bucket& bucket);
// Adds RoPE, so that q and k are rotated by `angles`: for the plan, one row per packed row; for a
// bucket, one row per row of the bucket.
void add_rotation(SequencePlan& plan, const torch::Tensor& angles, torch::Dtype dtype);
void add_rotation(SequencePlan::Bucket& bucket, const torch::Tensor& angles, torch::Dtype dtype);

struct HeadShape {
  std::int64_t kv_heads = 1;  // K, on this rank
  std::int64_t group = 1;     // g, query heads per key/value head
  std::int64_t width = 1;     // D
};
// Returns the attention output [T, K·g·D]. `sinks` [K·g]; undefined: none.
torch::Tensor attention(const torch::Tensor& qkv, const SequencePlan& plan, const HeadShape& heads,
                        const torch::Tensor& sinks = {});

// The steps before and after the attention of one bucket. to_heads() turns the bucket's rows of qkv
// into rotated queries [count·K, g, L, D] and keys and values [count·K, 1, L, D]; from_heads()
// turns the result [count·K, g, L, D] into rows [rows, K·g·D].
HeadTensors to_heads(const torch::Tensor& qkv, const SequencePlan::Bucket& bucket,
                     const HeadShape& heads);
torch::Tensor from_heads(const torch::Tensor& out, const SequencePlan::Bucket& bucket,
                         const HeadShape& heads);

// Makes heads from rows in another way than to_heads(). `rows` holds, of each input tensor, the
// rows of one bucket. All operators used must be differentiable.
class HeadMaker {
 public:
  virtual ~HeadMaker() = default;
  virtual HeadTensors heads(const std::vector<torch::Tensor>& rows,
                            const SequencePlan::Bucket& bucket) const = 0;
  // Returns the shape of the output: its `width` is that of the values, which may be narrower than
  // the keys.
  virtual HeadShape out() const = 0;
};
// Returns the attention output for heads that `maker` makes from `rows`.
torch::Tensor attention(const std::vector<torch::Tensor>& rows, const SequencePlan& plan,
                        const std::shared_ptr<const HeadMaker>& maker);

// Returns x[order]; `inverse` is the inverse permutation, used in the backward pass.
torch::Tensor permute_rows(const torch::Tensor& x, const torch::Tensor& order,
                           const torch::Tensor& inverse);

}  // namespace polyphony::exec
