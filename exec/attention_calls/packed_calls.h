// Attention calls for devices: one call covers many rectangles of a mask, without padding. The
// rectangles of a call follow each other in its queries and in its keys, and share the bounds
// `left` and `right`.
// In a rectangle of n queries and m keys, query i attends to key j if
//   i + m − n − left ≤ j ≤ i + m − n + right
// that is, relative to the diagonal that ends at the last query and the last key. −1: no
// such bound.
//
// Rectangles that overlap in queries or keys go into different calls, in the order of their
// queries; the results of a query that is in several calls are combined with log-sum-exps.
//
// In every call each query attends to at least one key and each key is attended to, so that no
// kernel has to handle an empty row. Index lists are copied from host to device once, through
// pinned memory.
#pragma once

#include <vector>

#include "exec/attention_calls/attention_calls.h"

namespace polyphony::exec {

// Rows of a tensor: all rows of an interval, or some of them.
struct PackedRows {
  Interval interval;
  torch::Tensor some;    // [rows] int64, ascending; undefined: all of the interval
  torch::Tensor starts;  // [rectangles + 1] int32: first row of each; at the end their number
  std::int64_t count = 0, longest = 0;

  bool are(std::int64_t all) const { return !some.defined() && interval == Interval{0, all}; }
  torch::Tensor of(const torch::Tensor& x) const;  // these rows of x (its first dimension)
};

struct PackedCall {
  std::vector<AttentionCall> parts;  // the rectangles, in rows of this call
  PackedRows queries, keys;
  torch::Tensor padded;  // [queries] int64: row of each in [rectangles · padded_length()]
  std::int64_t left = -1, right = -1;
  bool square = true;  // n = m in every rectangle
  bool fresh = true;   // none of its queries is in an earlier call

  // Returns the padded length of a rectangle's log-sum-exps in AttentionKernel::efficient, which
  // pads them to multiples of 32 rows.
  std::int64_t padded_length() const { return (queries.longest + 31) / 32 * 32; }
};

// Returns the calls for the rectangles; the arguments are those of plan_calls() in
// exec/attention_calls/attention_calls.h.
std::vector<PackedCall> pack_calls(const std::vector<Rectangle>& rectangles,
                                   const std::vector<Interval>& queries,
                                   const std::vector<Interval>& keys, torch::Device device);

// The attention calls of a mask: `each` is set on a CPU, `packed` on a device.
struct AttentionCalls {
  std::vector<AttentionCall> each;
  std::vector<PackedCall> packed;
};
AttentionCalls calls_for(const std::vector<Rectangle>& rectangles,
                         const std::vector<Interval>& queries, const std::vector<Interval>& keys,
                         torch::Device device);

}  // namespace polyphony::exec
