// What the balance loss of a router (exec/experts/balance.h, whose symbols this file uses) needs to
// know about a microbatch.
#pragma once

#include <cstdint>

#include "exec/torch_pch.h"
#include "exec/work_input.h"
#include "shared/model/model.h"

namespace polyphony::exec {

// Computed once per forward pass and shared by all its blocks.
struct BalancePlan {
  RouterScores scores = RouterScores::softmax;
  double scale = 0;  // balance_weight ÷ (samples of the global batch · layers); 0: no balance loss
  std::int64_t samples = 0;  // samples in the microbatch
  torch::Tensor sample;      // [T] int64: the sample that each token belongs to
  torch::Tensor tokens;      // [samples] int64: T_s, summed over all context-parallel ranks
};
// Returns the plan for the tokens of all tensor-parallel ranks. `context_index`: this rank's index
// in its context-parallel group.
BalancePlan plan_balance(const Module& module, const WorkInput& data, int context_index);

}  // namespace polyphony::exec
