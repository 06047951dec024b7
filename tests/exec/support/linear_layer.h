// One tensor-parallel layer with small whole numbers, whose sums are exact in any order, forward and backward on one rank.
#pragma once

#include <memory>
#include <vector>

#include "exec/autograd/linear.h"
#include "shared/error.h"

namespace polyphony::exec::testing {

inline constexpr std::int64_t kLinearIn = 6, kLinearOut = 4, kLinearRank = 3;

struct LinearWay {
  int tp = 2;
  std::int64_t rows = 10;
  bool column = false, sp = false, lora = false;
};

// y, dx and the gradients of weight, bias and pair, then what was recorded, of one rank.
struct LinearResult {
  std::vector<torch::Tensor> tensors;
  std::vector<InnerCollective> collectives;
};

inline torch::Tensor whole_numbers(const std::vector<std::int64_t>& shape, std::int64_t seed) {
  const torch::Tensor counted =
      torch::arange(torch::zeros(shape).numel(), torch::dtype(torch::kFloat64));
  return (counted * 37 + seed * 11).remainder(17).sub(8).reshape(shape);
}

inline LinearResult run_linear(Communicator& group, const LinearWay& way, int pieces,
                               torch::Device device = torch::kCPU) {
  using torch::Tensor;
  const int t = group.index();
  InnerGroups groups{Communicators{.tensor = &group}};
  const auto wide = torch::dtype(torch::kFloat64).device(device);
  Pass pass{&groups, std::make_shared<WeightQueue>(), torch::zeros({}, wide).requires_grad_(true)};
  pass.queue->immediate = true;
  pass.pieces = pieces;
  const RowShares shares{way.rows, way.tp};
  std::int64_t first = 0, own = way.rows;
  if (way.sp) {
    pass.rows = std::make_shared<SequenceRows>(groups.tensor, way.rows);
    first = shares.begin(t), own = shares.count(t);
  }
  const auto numbers = [&](const std::vector<std::int64_t>& shape, std::int64_t seed) {
    return whole_numbers(shape, seed).to(device);
  };
  const auto parameter = [&](const std::vector<std::int64_t>& shape, std::int64_t seed,
                             bool trains) {
    LocalParameter made;
    made.value = numbers(shape, seed);
    if (trains) made.grad = torch::zeros(shape, wide);
    return made;
  };
  LocalParameter weight = parameter({kLinearOut, kLinearIn}, 1 + t, !way.lora),
                 bias = parameter({kLinearOut}, 9, !way.lora),
                 a = parameter({kLinearRank, kLinearIn}, 3 + t, way.lora),
                 b = parameter({kLinearOut, kLinearRank}, 5 + t, way.lora);
  if (way.lora) weight.lora_a = &a, weight.lora_b = &b, weight.lora_scale = 2;
  // Of a column-parallel layer x and dx are the rows of this rank, of a row-parallel one y and dy.
  const Tensor all_x = numbers({way.rows, kLinearIn}, way.column ? 2 : 2 + t),
               all_dy = numbers({way.rows, kLinearOut}, way.column ? 7 + t : 7);
  const auto part = [&](const Tensor& all) { return all.narrow(0, first, own).clone(); };
  const Tensor x = (way.column ? part(all_x) : all_x.clone()).requires_grad_(true);
  const Tensor dy = way.column ? all_dy : part(all_dy);
  const Tensor y =
      way.column ? column_linear(pass, x, &weight, &bias) : row_linear(pass, x, &weight, &bias);
  POLYPHONY_CHECK(y.size(0) == dy.size(0), y.sizes() << ", " << dy.sizes());
  torch::autograd::backward({y}, {dy});
  LinearResult result{{y.detach().cpu(), x.grad().cpu()}, groups.take_issued()};
  for (const LocalParameter* p : {&weight, &bias, &a, &b})
    if (p->grad.defined()) result.tensors.push_back(p->grad.cpu());
  return result;
}

}  // namespace polyphony::exec::testing
