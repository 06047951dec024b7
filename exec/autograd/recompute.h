// Activation recomputation (checkpointing): parts of a forward pass whose graph is not kept. Only
// their inputs are saved; the backward pass runs the parts again, one at a time, including their
// collectives, and then also queues their weight gradients.
// Source: Chen et al., arXiv 1604.06174 (whole layers); Korthikanti et al., arXiv 2205.05198, §5
// (selective: attention only, which is cheap to run and large to keep).
#pragma once

#include <functional>
#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec {

// One recomputed part of one forward pass. The first call of output() or gradients() runs the part
// again; gradients() must be the last call, and frees the part.
class Rebuilt : public torch::CustomClassHolder {
 public:
  // Computes the output from the inputs, which are leaves of the graph when the part is run again.
  using Part = std::function<torch::Tensor(const std::vector<torch::Tensor>&)>;
  Rebuilt(Part part, const std::vector<torch::Tensor>& inputs);

  // Returns the recomputed output, without its graph.
  torch::Tensor output();
  // Returns the gradients of the inputs; undefined for an input that has none.
  std::vector<torch::Tensor> gradients(const torch::Tensor& output_grad);

 private:
  friend class RebuiltFunction;
  void rebuild();
  Part part_;
  std::vector<torch::Tensor> inputs_;
  std::vector<torch::Tensor> leaves_;
  torch::Tensor output_;  // with its graph
};

struct Recomputed {
  torch::Tensor output;
  c10::intrusive_ptr<Rebuilt> again;  // null if no graph is needed
};
// Returns part(inputs), recorded as one node of the graph. `anchor`: see exec/autograd/linear.h.
Recomputed recomputed(const torch::Tensor& anchor, const std::vector<torch::Tensor>& inputs,
                      Rebuilt::Part part);

}  // namespace polyphony::exec
