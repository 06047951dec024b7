// Parameters without a chunk, and gradients that every rank can generate by itself, for the tests
// of HeldParameters.
#pragma once

#include <string>
#include <vector>

#include "exec/parameters/held_parameters.h"
#include "tests/exec/support/tiny_model.h"

namespace polyphony::exec::testing {

inline constexpr AdamWOptions kAdamW{.weight_decay = 0.1};

// Two key/value heads, so that 4 tensor-parallel ranks share them; a vocabulary that no cut
// divides.
inline Module module_under_test() {
  Module m = tiny_language();
  m.kv_heads = 2;
  m.vocab = 23;
  return m;
}

inline std::vector<LocalParameter> locals(const Module& module, const ShardIndex& place,
                                          torch::Dtype dtype) {
  std::vector<LocalParameter> list;
  for (const Parameter& spec : parameters(module)) {
    const torch::Tensor value = initial_value(spec, place, 1, dtype, true);
    const auto wide = dtype == torch::kBFloat16 ? torch::kFloat32 : dtype;
    list.push_back({spec, value, spec.trained ? torch::zeros_like(value, wide) : torch::Tensor()});
  }
  return list;
}
inline std::vector<LocalParameter*> pointers(std::vector<LocalParameter>& list) {
  std::vector<LocalParameter*> all;
  for (LocalParameter& parameter : list) all.push_back(&parameter);
  return all;
}

// What the lane's work adds to the gradient: normal numbers by name and global element.
inline torch::Tensor drawn(Parameter spec, const ShardIndex& place, int step, int work, int lane,
                           torch::Dtype dtype = torch::kFloat64) {
  spec.name += " " + std::to_string(step) + " " + std::to_string(work) + " " + std::to_string(lane);
  spec.initial = Initial::normal;
  spec.deviation = 1;
  return initial_value(spec, place, 7, dtype, false);
}
}  // namespace polyphony::exec::testing
