// Parts of a forward whose graph is not kept: the backward runs them again, one at a time, with the
// collectives inside them. Their inputs are kept; so what they queue for the weight part is made
// then, too.
// Source: Chen et al., arXiv 1604.06174 (whole layers); Korthikanti et al., arXiv 2205.05198, §5
// (selective: attention only, which is cheap to run and large to keep).
#pragma once

#include <functional>
#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec {

// One part of one forward. Does its work again at the first call of either function; gradients()
// forgets it, and is the last call.
class Rebuilt : public torch::CustomClassHolder {
 public:
  // From its inputs, which are leaves when it is run again.
  using Part = std::function<torch::Tensor(const std::vector<torch::Tensor>&)>;
  Rebuilt(Part part, const std::vector<torch::Tensor>& inputs);

  // The output once more, without its graph.
  torch::Tensor output();
  // Of the inputs; undefined where an input has none.
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
  c10::intrusive_ptr<Rebuilt> again;  // null where no graph is wanted
};
// part(inputs). `anchor`: exec/autograd/linear.h.
Recomputed recomputed(const torch::Tensor& anchor, const std::vector<torch::Tensor>& inputs,
                      Rebuilt::Part part);

}  // namespace polyphony::exec
