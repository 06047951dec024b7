// Marks a collective call in the profile that Kineto records (exec/worker/kineto.h): an annotation
// named like torch.distributed's ("gloo:allreduce"), with the arguments that PyTorch gives to the
// kernels of such calls. Without a profiler it costs a look at LibTorch's list of callbacks.
// Source: PyTorch, torch/csrc/profiler/util.h.
#pragma once

#include <ATen/record_function.h>

#include <string>

#include "exec/torch_pch.h"

namespace polyphony::exec {

class CallAnnotation {
 public:
  // `call`: "allreduce", "allgather", "reduce_scatter" or "all_to_all". `in`, `out`: what this rank
  // gives and gets.
  CallAnnotation(const std::string& backend, const char* call, const std::string& group, int size,
                 const torch::Tensor& in, const torch::Tensor& out);

 private:
  at::RecordFunction range_;
};

}  // namespace polyphony::exec
