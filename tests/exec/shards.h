// Whole parameters and what ranks hold of them, through Parameter::runs.
#pragma once

#include "exec/torch_pch.h"
#include "shared/parameters.h"

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
// Writes it into `whole`, where another rank may have written the same before; false: that differs.
// Elements not yet written are NaN.
inline bool put_local(const torch::Tensor& whole, const Parameter& spec, const ShardIndex& shard,
                      const torch::Tensor& local) {
  const torch::Tensor from = local.contiguous().view({-1}), to = whole.view({-1});
  bool same = true;
  for (const ElementRun& run : spec.runs(shard)) {
    const torch::Tensor place = to.narrow(0, run.global, run.count);
    const torch::Tensor part = from.narrow(0, run.local, run.count);
    if (place.isnan().all().item<bool>())
      place.copy_(part);
    else
      same = same && place.equal(part);
  }
  return same;
}

}  // namespace polyphony::exec::testing
