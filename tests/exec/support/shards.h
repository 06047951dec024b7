// Converts between whole parameters and the ranks' slices of them, with Parameter::runs.
#pragma once

#include <algorithm>

#include "exec/torch_pch.h"
#include "shared/chunk/parameters.h"

namespace polyphony::exec::testing {

// What `shard` holds of `whole`.
inline torch::Tensor local_of(const torch::Tensor& whole, const Parameter& spec,
                              const ShardIndex& shard) {
  torch::Tensor local = torch::empty(spec.local_shape(shard), whole.options());
  const torch::Tensor from = whole.contiguous().view({-1}), to = local.view({-1});
  for (const ElementRun& run : spec.runs(shard))
    to.narrow(0, run.local, run.count).copy_(from.narrow(0, run.global, run.count));
  return local;
}
// Writes elements [begin, …) of what `shard` holds into `whole`, where another rank may have
// written the same before; false: that differs. Elements not yet written are NaN.
inline bool put_local(const torch::Tensor& whole, const Parameter& spec, const ShardIndex& shard,
                      const torch::Tensor& part, std::int64_t begin = 0) {
  const torch::Tensor from = part.contiguous().view({-1}), to = whole.view({-1});
  const std::int64_t end = begin + from.numel();
  bool same = true;
  for (const ElementRun& run : spec.runs(shard)) {
    const std::int64_t first = std::max(run.local, begin),
                       last = std::min(run.local + run.count, end);
    if (first >= last) continue;
    const torch::Tensor place = to.narrow(0, run.global + first - run.local, last - first);
    const torch::Tensor values = from.narrow(0, first - begin, last - first);
    const torch::Tensor fresh = place.isnan();
    same =
        same &&
        values.masked_select(fresh.logical_not()).equal(place.masked_select(fresh.logical_not()));
    place.copy_(torch::where(fresh, values, place));
  }
  return same;
}

// Adds what `shard` has of a gradient to the whole: all of it where ranks have parts of a sum, else
// what no rank before it holds.
inline void add_gradient(torch::Tensor& whole, const Parameter& spec, const ShardIndex& shard,
                         bool sequence_parallel, const torch::Tensor& local) {
  const bool partial = spec.sums_over_tensor(shard, sequence_parallel);
  const torch::Tensor from = local.to(whole.scalar_type()).reshape({-1}), to = whole.view({-1});
  for (const ElementRun& run : partial ? spec.runs(shard) : spec.owned_runs(shard))
    to.narrow(0, run.global, run.count) += from.narrow(0, run.local, run.count);
}

}  // namespace polyphony::exec::testing
