// Layers with weights, as autograd functions that queue their weight gradients and contain the
// reductions of tensor parallelism.
//   x [rows, in], W [out, in]:  y = x Wᵀ
//   backward: dx = dy W is computed at once; dW += dyᵀ x and db += Σ dy are queued
//   column-parallel: W and b are cut along out; dx is summed over the group
//   row-parallel:    W is cut along in; y is summed over the group, then b is added once
//   sequence parallelism (Pass::rows): x and dx of a column-parallel layer, and y and dy of a
//                    row-parallel layer, are a rank's own rows; all-gathers and reduce-scatters
//                    replace the sums
// Gradients accumulate into LocalParameter::grad. A frozen parameter queues and saves nothing.
// Source: the f/g pair of Shoeybi et al., arXiv 1909.08053; the weight part as an op of its own:
// Qi et al., arXiv 2401.10241.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "exec/autograd/recompute.h"
#include "exec/autograd/sequence_rows.h"
#include "exec/parameters/init.h"
#include "shared/model/model.h"

namespace polyphony::exec {

// The queued weight gradients of one microbatch. `immediate`: each part runs when it is queued, so
// that its inputs are freed early; the sums are the same either way.
class WeightQueue {
 public:
  bool immediate = false;
  void add(std::function<void()> part);
  void run();  // runs all queued parts in order, and removes them
 private:
  std::vector<std::function<void()>> parts_;
};

// The context shared by the layers of one forward pass.
struct Pass {
  InnerGroups* groups = nullptr;
  std::shared_ptr<WeightQueue> queue;
  torch::Tensor anchor;  // scalar; requires grad if the chunk is trained, so that the graph also
                         // records layers without a differentiable input
  std::shared_ptr<const RowExchange> rows = nullptr;  // null: every rank has all rows
  double norm_epsilon = kNormEpsilon;                 // Module::norm_epsilon
  int pieces = 1;                                     // ModuleLayout::tp_pieces
  // Returns the anchor for a layer with this weight, which requires no grad if the layer has
  // nothing to train.
  torch::Tensor anchor_of(const LocalParameter& weight) const {
    return weight.grad.defined() || weight.lora_a ? anchor : anchor.detach();
  }
};

// Layers. A parameter that a layer does not have (bias) is null. column_linear() and row_linear()
// are the tensor-parallel layers above; replicated_linear() has the whole weight on every rank.
torch::Tensor column_linear(const Pass& pass, const torch::Tensor& x, LocalParameter* weight,
                            LocalParameter* bias);
// `again`: if set, x is its output, which is not saved but recomputed for the weight gradient.
torch::Tensor row_linear(const Pass& pass, const torch::Tensor& x, LocalParameter* weight,
                         LocalParameter* bias, const c10::intrusive_ptr<Rebuilt>& again = {});
torch::Tensor replicated_linear(const Pass& pass, const torch::Tensor& x, LocalParameter* weight,
                                LocalParameter* bias);
torch::Tensor layer_norm(const Pass& pass, const torch::Tensor& x, LocalParameter* weight,
                         LocalParameter* bias);
torch::Tensor rms_norm(const Pass& pass, const torch::Tensor& x, LocalParameter* weight);
// Returns a copy of the parameter in its gradient's format, for use with LibTorch's own operators
// in the graph. The copy may outlive gathered parameters.
torch::Tensor parameter_value(const Pass& pass, LocalParameter* parameter);
// Returns x + table[rows]. `rows` undefined: x has as many rows as several whole tables, and the
// table is added to each.
torch::Tensor add_position(const Pass& pass, const torch::Tensor& x, const torch::Tensor& rows,
                           LocalParameter* table);

}  // namespace polyphony::exec
