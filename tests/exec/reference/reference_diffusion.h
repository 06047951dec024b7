// What a diffusion module must compute, said again in the plainest way: one item alone, whole
// weights by name, dense attention head by head, stock ATen operators, plain autograd, fp64.
// Nothing of exec/ computes here. Sources: exec/layers/diffusion.h names them; this file repeats the
// formulas, not the code.
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

// Σ (prediction − (latent − noise))², a scalar that autograd can follow into `values` and the
// conditioning.
torch::Tensor reference_flow_error(const Module& module, const Tensors& values,
                                   const ReferenceLatent& item);

}  // namespace polyphony::exec::testing
