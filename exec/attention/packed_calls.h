// Attention calls as devices take them: one for many rectangles of a mask, without padding. Its rectangles stand one
// behind the other in their queries and in their keys, and share how far a query sees.
//   of a rectangle of n queries and m keys, query i sees key j where  i + m − n − left ≤ j ≤ i + m − n + right:
//   the diagonal that ends with the last query and the last key. −1: without that bound.
//   Rectangles that overlap in queries or keys go into other calls, in the order of their queries; a query of several
//   calls joins what it saw by log-sum-exps.
// In every call each query sees a key, and each key is seen: no kernel is asked what it says of nothing.
// Numbers of the host's go to the device once, through pinned memory.
#pragma once

#include <vector>

#include "exec/attention/attention_calls.h"

namespace polyphony::exec {

// Rows of a tensor: those of an interval, or some of them.
struct PackedRows {
  Interval interval;
  torch::Tensor some;    // [rows] int64, ascending; undefined: all of the interval
  torch::Tensor starts;  // [rectangles + 1] int32: of each among these rows, and their number
  std::int64_t count = 0, longest = 0;

  bool are(std::int64_t all) const { return !some.defined() && interval == Interval{0, all}; }
  torch::Tensor of(const torch::Tensor& x) const;  // x's, by its first dimension
};

struct PackedCall {
  std::vector<AttentionCall> parts;  // rectangles, of rows of the call
  PackedRows queries, keys;
  torch::Tensor padded;  // [queries] int64: row of each in [rectangles · padded_length()]
  std::int64_t left = -1, right = -1;
  bool square = true;  // n = m in every rectangle
  bool fresh = true;   // none of its queries is in a call before

  // Of log-sum-exps of the kernel that pads them (AttentionKernel::efficient): 32 rows are its unit.
  std::int64_t padded_length() const { return (queries.longest + 31) / 32 * 32; }
};

// Arguments: plan_calls() of exec/attention/attention_calls.h.
std::vector<PackedCall> pack_calls(const std::vector<Rectangle>& rectangles,
                                   const std::vector<Interval>& queries,
                                   const std::vector<Interval>& keys, torch::Device device);

// What attention takes of a mask: `each` on a CPU, `packed` on a device.
struct AttentionCalls {
  std::vector<AttentionCall> each;
  std::vector<PackedCall> packed;
};
AttentionCalls calls_for(const std::vector<Rectangle>& rectangles,
                         const std::vector<Interval>& queries, const std::vector<Interval>& keys,
                         torch::Device device);

}  // namespace polyphony::exec
