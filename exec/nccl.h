// Ranks with a GPU each: all-reduces of CUDA tensors over NCCL; everything else, and all CPU
// tensors, over the Gloo transport beneath.
//   Messages of CUDA tensors travel through host memory: NCCL ignores tags, so it cannot keep the
//   contract of exec/communicator.h, and Gloo sends no CUDA memory. Calls block the host until the
//   GPU is done, as the contract says. NCCL refuses two ranks on one GPU. Compiled with
//   POLYPHONY_NCCL only; compiled, never run: no test covers it yet.
// Source: torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp (LibTorch 2.11); NCCL ignores tags:
// pytorch issue 125079.
#pragma once

#include <memory>

#include "exec/gloo.h"

namespace polyphony::exec {

// Collective over all ranks. This rank uses GPU `launch.local_rank` of its node. InputError when
// there is none.
std::unique_ptr<Transport> connect_nccl(const LaunchEnv& launch, const GlooOptions& options = {});

}  // namespace polyphony::exec
