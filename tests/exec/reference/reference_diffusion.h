// A reference for diffusion modules, written as simply as possible: one item alone, whole weights
// by name, dense attention head by head, stock ATen operators, plain autograd, fp64. No code of
// exec/ computes here. Sources: as in exec/layers/diffusion.h; this file repeats the formulas, not
// the code.
#pragma once

#include <map>
#include <string>

#include "exec/torch_pch.h"
#include "shared/model/model.h"

namespace polyphony::exec::testing {

using Tensors = std::map<std::string, torch::Tensor>;  // whole parameters, by global name

struct ReferenceLatent {
  torch::Tensor latent, noise;  // [tokens, latent_channels·patch²]
  double time = 0;
  torch::Tensor conditioning;  // [rows, W]
};

// Returns Σ (prediction − (latent − noise))², a scalar that is differentiable with respect to
// `values` and the conditioning.
torch::Tensor reference_flow_error(const Module& module, const Tensors& values,
                                   const ReferenceLatent& item);

}  // namespace polyphony::exec::testing
