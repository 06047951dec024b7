// Weight-bearing layers as autograd functions with queued weight gradients, and the tensor-parallel
// reductions inside them.
//   x [rows, in], W [out, in]:  y = x Wᵀ
//   backward: dx = dy W at once; dW += dyᵀ x and db += Σ dy are queued
//   column-parallel: W and b cut along out; dx is summed over the group
//   row-parallel:    W cut along in; y is summed over the group, then b added once
//   sequence parallelism (Pass::rows): x and dx of the one, y and dy of the other are a rank's own
//   rows; gathers and scatters take the place of the sums
// Gradients accumulate into LocalParameter::grad; a frozen parameter queues and keeps nothing.
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

// Weight parts of one work item. `immediate`: run when queued, so that inputs are freed early; same
// sums either way.
class WeightQueue {
 public:
  bool immediate = false;
  void add(std::function<void()> part);
  void run();  // all queued, in order, and forget them
 private:
  std::vector<std::function<void()>> parts_;
};

// What the layers of one forward share.
struct Pass {
  InnerGroups* groups = nullptr;
  std::shared_ptr<WeightQueue> queue;
  torch::Tensor anchor;  // scalar; requires grad when the chunk trains, so that layers without a
                         // differentiable input are recorded too
  std::shared_ptr<const RowExchange> rows = nullptr;  // null: every rank has every row
  double norm_epsilon = kNormEpsilon;                 // Module::norm_epsilon
  int pieces = 1;                                     // ModuleLayout::tp_pieces
  // For a layer with this weight: does not require grad when the layer trains nothing.
  torch::Tensor anchor_of(const LocalParameter& weight) const {
    return weight.grad.defined() || weight.lora_a ? anchor : anchor.detach();
  }
};

// Parameters may be null where a layer has none (bias).
torch::Tensor column_linear(const Pass& pass, const torch::Tensor& x, LocalParameter* weight,
                            LocalParameter* bias);
// `again`: x is its output; it is not kept, but made again for the weight part.
torch::Tensor row_linear(const Pass& pass, const torch::Tensor& x, LocalParameter* weight,
                         LocalParameter* bias, const c10::intrusive_ptr<Rebuilt>& again = {});
torch::Tensor replicated_linear(const Pass& pass, const torch::Tensor& x, LocalParameter* weight,
                                LocalParameter* bias);
torch::Tensor layer_norm(const Pass& pass, const torch::Tensor& x, LocalParameter* weight,
                         LocalParameter* bias);
torch::Tensor rms_norm(const Pass& pass, const torch::Tensor& x, LocalParameter* weight);
// A copy of the parameter in its gradient's format, for what the graph makes of it by operators. It
// may outlive gathered parameters.
torch::Tensor parameter_value(const Pass& pass, LocalParameter* parameter);
// x + table[rows]; `rows` undefined: x is whole copies of the table, one after another.
torch::Tensor add_position(const Pass& pass, const torch::Tensor& x, const torch::Tensor& rows,
                           LocalParameter* table);

}  // namespace polyphony::exec
