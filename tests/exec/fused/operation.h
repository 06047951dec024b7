// The operations that have a fused form (exec/fused/forms.h), each called as the executor's layers
// call it, so that both forms can be run on the same inputs: on a CPU, where loops run our bodies,
// and on a GPU, for which the printed times are meant.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exec/fused/forms.h"

namespace polyphony::exec::testing {

struct Problem {
  std::int64_t rows = 0, width = 0;
  torch::Dtype format = torch::kFloat32;
  torch::Device device = torch::kCPU;
};

// Of the same inputs whatever the format of the computation: random numbers rounded to `Problem::format`, computed in
// `computed`, on the device. Everything that the operation gives: outputs, gradients of inputs, gradients of weights.
struct Operation {
  std::string name;
  // Makes the inputs; what it returns runs the operation once.
  using Run = std::function<std::vector<torch::Tensor>()>;
  std::function<Run(const Problem&, torch::Dtype computed)> prepare;
  std::int64_t least_width = 1;     // narrower rows leave nothing but what cancels
  std::int64_t timed_width = 4096;  // on GPUs, of 8192 rows
  bool is_product = false;          // sums over the width by ATen's matrix product
};

const std::vector<Operation>& operations();

class FormsFor {
 public:
  explicit FormsFor(kernels::Forms forms) { kernels::use_forms(forms); }
  ~FormsFor() { kernels::use_forms(kernels::Forms::by_device); }
  FormsFor(const FormsFor&) = delete;
  FormsFor& operator=(const FormsFor&) = delete;
};

}  // namespace polyphony::exec::testing
