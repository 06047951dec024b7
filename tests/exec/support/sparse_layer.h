// The experts of one decoder block on one rank, and a reference for their results. Samples have
// unequal lengths; some are empty.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/autograd/wide_gradient.h"
#include "exec/experts/experts.h"
#include "tests/exec/reference/reference_experts.h"
#include "tests/exec/support/routed.h"
#include "tests/exec/support/tiny_model.h"

namespace polyphony::exec::testing {

inline Module sparse_language() {
  Module m = tiny_language();
  m.ffn = 0;
  m.experts = 8;
  m.experts_per_token = 2;
  m.expert_ffn = 12;
  m.balance_weight = 0.3;
  return m;
}

// Softmax as it comes; by sigmoids, scaled, in groups, alone and together; GPT-OSS' biases and gates;
// everything.
inline std::vector<Module> variants_of_experts() {
  const Module plain = sparse_language();
  std::vector<Module> list(8, plain);
  list[1].router_scores = RouterScores::sigmoid;
  list[2].routed_scale = 2.5;
  list[3].expert_groups = 4;
  list[3].groups_per_token = 2;
  route_by_sigmoids(list[4]);
  bias_experts(list[5]);
  list[6].activation = Activation::gelu;
  route_by_sigmoids(list[7]);
  bias_experts(list[7]);
  list[4].shared_ffn = list[7].shared_ffn = 8;
  return list;
}

inline const std::string kSparseBlock = "language.block0.";

// Tokens of each sample of one rank's (or one cell's) work.
struct SparseWork {
  WorkInput input;
  torch::Tensor x, seed;  // [T, H]: input, and gradient of the output
};
inline SparseWork sparse_work(const std::vector<std::int64_t>& lengths, int hidden, int seed) {
  torch::manual_seed(static_cast<std::uint64_t>(seed));
  SparseWork work;
  work.input.lengths = lengths;
  work.input.balance_scale = 1.0 / 5;
  std::int64_t tokens = 0;
  for (const std::int64_t length : lengths) tokens += length;
  work.input.positions = torch::zeros({tokens}, torch::kInt64);
  work.x = torch::randn({tokens, hidden}, torch::kFloat64);
  work.seed = torch::randn({tokens, hidden}, torch::kFloat64);
  return work;
}

// The experts of one rank.
class SparseLayer {
 public:
  SparseLayer(const Module& module, const Communicators& communicators, const ShardIndex& shard,
              bool trainable = true, torch::Dtype dtype = torch::kFloat64)
      : module_(module), groups_(communicators), queue_(std::make_shared<WeightQueue>()) {
    queue_->immediate = true;
    for (const Parameter& spec : polyphony::parameters(module, {1, 2})) {
      const torch::Tensor value = initial_value(spec, shard, 7, dtype, true);
      parameters_.push_back(
          {spec, value,
           trainable ? torch::zeros_like(value, gradient_type(dtype)) : torch::Tensor()});
    }
    for (LocalParameter& parameter : parameters_)
      layer_.parameters[parameter.spec.name.substr(kSparseBlock.size())] = &parameter;
    anchor_ = torch::zeros({}, dtype).requires_grad_(trainable);
  }

  torch::Tensor forward(const torch::Tensor& x, const WorkInput& data, Choices& choices) {
    const Frame frame{module_,
                      data,
                      {&groups_, queue_, anchor_},
                      {},
                      inputs_,
                      edges_,
                      nullptr,
                      plan_balance(module_, data, groups_.context.index()),
                      choices,
                      0,
                      {}};
    return experts(frame, layer_, x);
  }

  Choices choices_of(const torch::Tensor& chosen) const { return {{&layer_, chosen}}; }
  std::vector<LocalParameter>& parameters() { return parameters_; }
  LocalParameter& at(const std::string& name) { return *layer_.at(name); }
  InnerGroups& groups() { return groups_; }
  WeightQueue& queue() { return *queue_; }

 private:
  Module module_;
  InnerGroups groups_;
  std::shared_ptr<WeightQueue> queue_;
  std::vector<LocalParameter> parameters_;
  Layer layer_;
  torch::Tensor anchor_;
  std::vector<torch::Tensor> inputs_;
  std::vector<int> edges_;
};

// The same of whole parameters, sample by sample: outputs, and gradients of Σ seed·y plus the
// balance term.
struct SparseExpected {
  std::vector<torch::Tensor> y, dx;  // by work
  Tensors gradients;                 // over all works
};
inline SparseExpected expected_of(const Module& module, const Tensors& values,
                                  const std::vector<SparseWork>& works) {
  SparseExpected expected;
  Tensors leaves;
  for (const auto& [name, value] : values) leaves[name] = value.clone().requires_grad_(true);
  for (const SparseWork& work : works) {
    const torch::Tensor x = work.x.clone().requires_grad_(true);
    std::vector<torch::Tensor> rows;
    torch::Tensor loss = torch::zeros({}, torch::kFloat64) + 0 * x.sum();
    std::int64_t first = 0;
    for (const std::int64_t length : work.input.lengths) {
      const auto [y, balance] =
          reference_experts(module, leaves, kSparseBlock, x.narrow(0, first, length));
      rows.push_back(y);
      loss = loss + (y * work.seed.narrow(0, first, length)).sum() +
             module.balance_weight * work.input.balance_scale / module.layers * balance;
      first += length;
    }
    loss.backward();
    expected.y.push_back(rows.empty() ? torch::zeros_like(work.x) : torch::cat(rows).detach());
    expected.dx.push_back(x.grad());
  }
  for (const auto& [name, leaf] : leaves)
    expected.gradients[name] = leaf.grad().defined() ? leaf.grad() : torch::zeros_like(leaf);
  return expected;
}
// Of every parameter of the layer, whole.
inline Tensors whole_values(const Module& module) {
  Tensors values;
  for (const Parameter& spec : polyphony::parameters(module, {1, 2}))
    values[spec.name] = initial_value(spec, {}, 7, torch::kFloat64, true);
  return values;
}

}  // namespace polyphony::exec::testing
