// Attention over packed sequences of unequal length, with rotary positions and grouped queries.
//   qkv [T, K·(g+2)·D]: per key/value head (K on this rank) its g query heads, then k, then v
//   out [T, K·g·D]
//   On CPUs sequences are gathered into buckets [count, L]: of equal lengths when bidirectional;
//   right-padded when causal, where padding needs no mask: no valid query sees it, and its own
//   rows are dropped, with zero gradient. On devices all rows are one bucket, and calls know where sequences end.
//   RoPE pairs element i with i + D/2 (Hugging Face's Llama layout).
//   Angles: exec/attention/rotary.h.
//   A causal row may be kept to the w rows that end with it (a sliding window). A sink is a score
//   of each query head that no key has and no value follows: it takes its part of the softmax.
// Sources: windows, Beltagy et al., arXiv 2004.05150, §3.1; sinks, Xiao et al., arXiv 2309.17453,
// learned as in GPT-OSS (arXiv 2508.10925).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/attention/packed_calls.h"
#include "exec/torch_pch.h"

namespace polyphony::exec {

struct ContextPlan;  // exec/attention/context_attention.h
class HeadExchange;  // exec/attention/head_exchange.h

// Made once per forward, shared by all its blocks.
struct SequencePlan {
  struct Bucket {
    std::int64_t rows = 0;     // valid ones
    std::int64_t count = 0;    // sequences
    std::int64_t longest = 0;  // L
    torch::Tensor padded;      // [count·L] bucket row, `rows` where padding; undefined: no padding
    torch::Tensor valid;       // [rows] position in count·L; undefined: no padding
    torch::Tensor cosine;      // [count, 1, 1, L, D]; undefined: no RoPE
    torch::Tensor sine;        // likewise, negative in the first half
  };
  std::vector<Bucket> buckets;
  torch::Tensor order;    // [T] packed row of each row in bucket order; undefined: the same
  torch::Tensor inverse;  // [T]
  bool causal = false;
  std::int64_t window = 0;     // of a causal plan: rows that a row sees, itself included; 0: all
  std::int64_t row_split = 0;  // keys of a row in one call; 0: all
  // Of a mask, or on a device: all rows are one sequence, in one bucket. Null: by bucket.
  std::shared_ptr<const AttentionCalls> calls;
  // On a device, where a module has layers whose rows read those before them (exec/layers/causal_convolution.h):
  // samples side by side, padded.
  std::shared_ptr<const SequencePlan> side_by_side;
  std::shared_ptr<const ContextPlan> context;  // set: instead of all the above
  // Set (context parallelism by heads): the above is of the rows of all ranks, which are turned before they
  // leave theirs; `own`: this rank's, as one sequence.
  std::shared_ptr<const HeadExchange> heads;
  Bucket own;
};

// Sequences one behind the other, none of which sees another.
TokenMask mask_of(const std::vector<std::int64_t>& lengths, bool causal);
// Bidirectional, without RoPE.
SequencePlan plan_images(const std::vector<std::int64_t>& lengths, torch::Device device);
// Causal, seeing no further than `window`, in pieces of `row_split` keys; 0: all of it. Not turned; turned by
// `angles` [T, D/2] (exec/attention/rotary.h), rows in packed order.
SequencePlan plan_causal(const std::vector<std::int64_t>& lengths, torch::Device device,
                         std::int64_t window = 0, std::int64_t row_split = 0);
SequencePlan plan_causal(const std::vector<std::int64_t>& lengths, const torch::Tensor& angles,
                         torch::Dtype dtype, std::int64_t window = 0, std::int64_t row_split = 0);
// Of `mask`, likewise. Not turned.
SequencePlan plan_masked(const TokenMask& mask, std::int64_t window, std::int64_t row_split,
                         torch::Device device);
// Buckets whatever the device, not turned, without calls.
SequencePlan plan_side_by_side(const std::vector<std::int64_t>& lengths, torch::Device device);
SequencePlan::Bucket one_sequence(std::int64_t rows);  // without padding
// What every bucket's attention takes.
std::shared_ptr<const AttentionCalls> calls_of(const SequencePlan& plan,
                                               const SequencePlan::Bucket& bucket);
// Turns q and k by `angles`, of all rows in packed order; of a bucket's rows.
void add_rotation(SequencePlan& plan, const torch::Tensor& angles, torch::Dtype dtype);
void add_rotation(SequencePlan::Bucket& bucket, const torch::Tensor& angles, torch::Dtype dtype);

struct HeadShape {
  std::int64_t kv_heads = 1;  // K, on this rank
  std::int64_t group = 1;     // g, query heads per key/value head
  std::int64_t width = 1;     // D
};
// `sinks` [K·g]; undefined: none.
torch::Tensor attention(const torch::Tensor& qkv, const SequencePlan& plan, const HeadShape& heads,
                        const torch::Tensor& sinks = {});

// The steps before and after the attention itself, of one bucket: its rows of qkv become rotated
// queries [count·K, g, L, D], keys and values [count·K, 1, L, D]; the result [count·K, g, L, D]
// becomes rows [rows, K·g·D].
struct HeadTensors {
  torch::Tensor queries, keys, values;
};
HeadTensors to_heads(const torch::Tensor& qkv, const SequencePlan::Bucket& bucket,
                     const HeadShape& heads);
torch::Tensor from_heads(const torch::Tensor& out, const SequencePlan::Bucket& bucket,
                         const HeadShape& heads);

// Makes heads of rows, where that is not what to_heads() does: of every tensor in `rows` the rows of
// one bucket; all operators have gradients.
class HeadMaker {
 public:
  virtual ~HeadMaker() = default;
  virtual HeadTensors heads(const std::vector<torch::Tensor>& rows,
                            const SequencePlan::Bucket& bucket) const = 0;
  // Of what leaves: `width` is that of the values, which may be narrower than the keys.
  virtual HeadShape out() const = 0;
};
// attention() of heads that `maker` makes.
torch::Tensor attention(const std::vector<torch::Tensor>& rows, const SequencePlan& plan,
                        const std::shared_ptr<const HeadMaker>& maker);

// x[order]; `inverse` undoes it.
torch::Tensor permute_rows(const torch::Tensor& x, const torch::Tensor& order,
                           const torch::Tensor& inverse);

}  // namespace polyphony::exec
