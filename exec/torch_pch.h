// The precompiled header of exec/ (exec/CMakeLists.txt): the LibTorch headers that nearly every
// file includes. Files still include what they use.
//
// torch/torch.h is omitted on purpose: its torch::nn and torch::optim cost every file 5 s more to
// compile (9 s against 4 s). torch/types.h has tensors, factories and all operators. Include
// torch/nn/functional.h and the like only where needed.
#pragma once

#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
