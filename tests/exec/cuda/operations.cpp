#include "tests/exec/cuda/operation.h"

#include "exec/autograd/glu.h"
#include "exec/autograd/linear.h"
#include "exec/autograd/wide_gradient.h"
#include "exec/layers/dispatch.h"
#include "exec/layers/vocabulary.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

// Random numbers that `format` has, in `computed`; of a run that is one element longer, so that they begin where no pack does
// when there is an odd number of them, and where one does when there is not.
Tensor random(const Problem& problem, torch::IntArrayRef sizes, torch::Dtype computed,
              double spread = 1) {
  const std::int64_t count = c10::multiply_integers(sizes), before = count % 2;
  const Tensor all = torch::randn({count + before}, torch::kFloat64).mul_(spread);
  return all.to(problem.format)
      .to(computed)
      .to(problem.device)
      .narrow(0, before, count)
      .view(sizes);
}

Tensor random_places(const Problem& problem, std::int64_t count, std::int64_t below) {
  return torch::randint(below, {count}, torch::kInt64).to(problem.device);
}

// A layer's surroundings, alone; and a weight of its own.
struct Surroundings {
  InnerGroups groups{Communicators{}};
  Pass pass;
  LocalParameter weight;
  explicit Surroundings(const Tensor& value, bool trains)
      : pass{&groups, std::make_shared<WeightQueue>(),
             torch::zeros({}, value.options()).requires_grad_(true)} {
    weight.value = value;
    weight.spec.shape = value.sizes().vec();
    weight.grad = trains ? torch::zeros(value.sizes(),
                                        value.options().dtype(gradient_type(value.scalar_type())))
                         : Tensor();
  }
};

Operation gate(Activation activation) {
  return {"glu " + std::string(name(activation)),
          [activation](const Problem& problem, torch::Dtype computed) -> Operation::Run {
            const Tensor x = random(problem, {problem.rows, 2 * problem.width}, computed, 4);
            const Tensor dy = random(problem, {problem.rows, problem.width}, computed);
            return [=]() -> std::vector<Tensor> {
              const Tensor leaf = x.detach().requires_grad_(true);
              const Tensor y = glu(leaf, activation);
              torch::autograd::backward({y}, {dy});
              return {y.detach(), leaf.grad()};
            };
          }};
}

Operation::Run prepare_norm(const Problem& problem, torch::Dtype computed) {
  const Tensor x = random(problem, {problem.rows, problem.width}, computed);
  const Tensor dy = random(problem, {problem.rows, problem.width}, computed);
  const auto around =
      std::make_shared<Surroundings>(random(problem, {problem.width}, computed), true);
  return [=]() -> std::vector<Tensor> {
    const Tensor leaf = x.detach().requires_grad_(true);
    const Tensor y = rms_norm(around->pass, leaf, &around->weight);
    torch::autograd::backward({y}, {dy});
    around->weight.grad.zero_();
    around->pass.queue->run();
    return {y.detach(), leaf.grad(), around->weight.grad};
  };
}

// The table is the identity: logits are h, exactly, and dh is their gradient.
Operation::Run prepare_loss(const Problem& problem, torch::Dtype computed) {
  const Tensor h = random(problem, {problem.rows, problem.width}, computed, 4);
  const Tensor labels = random_places(problem, problem.rows, problem.width);
  const auto around = std::make_shared<Surroundings>(
      torch::eye(problem.width, torch::dtype(computed).device(problem.device)), false);
  return [=]() -> std::vector<Tensor> {
    const Tensor leaf = h.detach().requires_grad_(true);
    const Tensor loss = vocabulary_loss(around->pass, leaf, labels, 0.25, &around->weight);
    torch::autograd::backward({loss});
    return {loss.detach(), leaf.grad()};
  };
}

Operation::Run prepare_combine(const Problem& problem, torch::Dtype computed) {
  constexpr std::int64_t kPerToken = 3, kExperts = 8;
  const auto around = std::make_shared<Surroundings>(torch::zeros({1}), false);
  const auto dispatch = std::make_shared<Dispatch>(
      around->groups.expert,
      random_places(problem, problem.rows * kPerToken, kExperts).view({problem.rows, kPerToken}),
      kExperts, problem.rows * kPerToken);
  const Tensor here = random(problem, {problem.rows * kPerToken, problem.width}, computed);
  const Tensor dy = random(problem, {problem.rows, problem.width}, computed);
  const Tensor weights = random(problem, {problem.rows, kPerToken}, gradient_type(computed));
  return [=]() -> std::vector<Tensor> {
    static_cast<void>(around);  // dispatch has its group
    const auto gradients = dispatch->combine_backward(dy, here, weights);
    return {dispatch->combine(here, weights), dispatch->combine(here, {}), gradients.here,
            gradients.weights};
  };
}

}  // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all{
      gate(Activation::silu),          gate(Activation::gelu),
      gate(Activation::clamped),       {"RMSNorm", prepare_norm, 3},
      {"cross-entropy", prepare_loss}, {"experts' answers", prepare_combine}};
  return all;
}

}  // namespace polyphony::exec::testing
