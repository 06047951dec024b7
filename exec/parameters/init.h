// A parameter as one rank holds it, and its initial value.
//   Element i of the global tensor is a function of (seed, parameter name, i): a rank makes just
//   its slice, in O(slice), and every layout starts from the same model.
// `perturb` is for tests: zeros and ones move by 0.1·normal, so that the gradients behind them are
// proven too.
#pragma once

#include <cstdint>

#include "exec/torch_pch.h"
#include "shared/chunk/parameters.h"

namespace polyphony::exec {

struct LocalParameter {
  Parameter spec;       // global name, shape and cut
  torch::Tensor value;  // this rank's slice
  torch::Tensor grad;   // same shape, zero at the start of a step; undefined when frozen. fp32
                        // when the value is bf16
  // Of a weight under LoRA (shared/kernels/lora.h): the pair that is trained beside it, and alpha /
  // r.
  LocalParameter* lora_a = nullptr;
  LocalParameter* lora_b = nullptr;
  double lora_scale = 0;
};

// What `shard` holds of the parameter, in `dtype`, on the CPU.
torch::Tensor initial_value(const Parameter& parameter, const ShardIndex& shard, std::uint64_t seed,
                            torch::Dtype dtype, bool perturb);

}  // namespace polyphony::exec
