// One rank's slice of a parameter, and the value that training begins with: that of published
// weights, or a random one.
//
// Element i of the global tensor is a function of (seed, parameter name, i). So a rank computes
// only its slice, in time proportional to the slice, and every layout starts from the same model.
#pragma once

#include <cstdint>

#include "exec/torch_pch.h"
#include "shared/chunk/parameters.h"
#include "shared/fp8_scaling.h"
#include "shared/weights/pretrained.h"

namespace polyphony::exec {

struct LocalParameter {
  Parameter spec;       // global name, shape and cut
  torch::Tensor value;  // this rank's slice
  torch::Tensor grad;   // same shape, zero at the start of a step; undefined when frozen. fp32
                        // when the value is bf16
  // For a weight with LoRA (shared/kernels/lora.h): the low-rank pair that is trained in addition,
  // and alpha / r.
  LocalParameter* lora_a = nullptr;
  LocalParameter* lora_b = nullptr;
  double lora_scale = 0;
  Fp8Scaling fp8 = Fp8Scaling::off;  // of the GEMMs with this weight
};

// Returns the value of `shard`'s slice in published weights, in `dtype`, on the CPU. The parameter
// must be part of the published model (is_published()).
torch::Tensor pretrained_value(const Parameter& parameter, const ShardIndex& shard,
                               torch::Dtype dtype, const PretrainedModule& weights);

// Returns the initial value of `shard`'s slice of the parameter, in `dtype`, on the CPU. `perturb`
// is for tests: it moves zeros and ones by 0.1·normal, so that tests also cover the gradients that
// depend on them.
torch::Tensor initial_value(const Parameter& parameter, const ShardIndex& shard, std::uint64_t seed,
                            torch::Dtype dtype, bool perturb);

}  // namespace polyphony::exec
