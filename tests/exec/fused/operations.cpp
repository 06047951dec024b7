#include "tests/exec/fused/operation.h"

#include "exec/attention/qk_norm.h"
#include "exec/autograd/glu.h"
#include "exec/autograd/linear.h"
#include "exec/autograd/wide_gradient.h"
#include "exec/experts/dispatch.h"
#include "exec/experts/expert_products.h"
#include "exec/fused/adamw.h"
#include "exec/fused/rotary.h"
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

Operation::Run prepare_layer_norm(const Problem& problem, torch::Dtype computed) {
  const Tensor x = random(problem, {problem.rows, problem.width}, computed);
  const Tensor dy = random(problem, {problem.rows, problem.width}, computed);
  const auto parameter = [&] {
    return std::make_shared<Surroundings>(random(problem, {problem.width}, computed), true);
  };
  const auto weight = parameter(), bias = parameter();
  return [=]() -> std::vector<Tensor> {
    const Tensor leaf = x.detach().requires_grad_(true);
    const Tensor y = layer_norm(weight->pass, leaf, &weight->weight, &bias->weight);
    torch::autograd::backward({y}, {dy});
    for (const auto& one : {weight, bias}) one->weight.grad.zero_();
    weight->pass.queue->run();
    return {y.detach(), leaf.grad(), weight->weight.grad, bias->weight.grad};
  };
}

Operation::Run prepare_head_norm(const Problem& problem, torch::Dtype computed) {
  const HeadShape heads{.kv_heads = 2, .group = 3, .width = problem.width};
  const std::vector<std::int64_t> sizes{problem.rows, 2 * (3 + 2) * problem.width};
  const Tensor x = random(problem, sizes, computed), dy = random(problem, sizes, computed);
  const auto weight = [&] {
    return std::make_shared<Surroundings>(random(problem, {problem.width}, computed), true);
  };
  const auto query = weight(), key = weight();
  return [=]() -> std::vector<Tensor> {
    const Tensor leaf = x.detach().requires_grad_(true);
    const Tensor y = qk_norm(query->pass, leaf, heads, &query->weight, &key->weight);
    torch::autograd::backward({y}, {dy});
    for (const auto& one : {query, key}) one->weight.grad.zero_();
    query->pass.queue->run();
    return {y.detach(), leaf.grad(), query->weight.grad, key->weight.grad};
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

// All of a head turns where it is whole packs, else its first part; queries in groups of three.
Operation::Run prepare_rotary(const Problem& problem, torch::Dtype computed) {
  constexpr std::int64_t kHeads = 2, kGroup = 3;
  const std::int64_t rows = problem.rows, width = problem.width,
                     turned = width % 16 == 0 ? width : width / 3 * 2;
  const Tensor qkv = random(problem, {rows, kHeads, kGroup + 2, width}, computed);
  const Tensor dq = random(problem, {rows, kHeads, kGroup, width}, computed),
               dk = random(problem, {rows, kHeads, 1, width}, computed),
               dv = random(problem, {rows, kHeads, 1, width}, computed);
  const Tensor cosine = random(problem, {rows, turned}, gradient_type(computed)),
               sine = random(problem, {rows, turned}, gradient_type(computed));
  // As exec/attention/head_rows.cpp has it.
  const auto turn = [=](const Tensor& x, double sign) {
    const auto by_row = [&](const Tensor& table) { return table.view({rows, 1, 1, turned}); };
    const Tensor part = x.narrow(3, 0, turned);
    return at::cat({at::mul(part, by_row(cosine))
                        .add(part.roll(turned / 2, 3).mul(by_row(sine)), sign)
                        .to(x.scalar_type()),
                    x.narrow(3, turned, width - turned)},
                   3);
  };
  return [=]() -> std::vector<Tensor> {
    if (kernels::wanted(qkv)) {
      const auto heads = kernels::split_turned(qkv, cosine, sine);
      return {heads.queries, heads.keys, kernels::join_turned(dq, dk, dv, cosine, sine)};
    }
    return {turn(qkv.narrow(2, 0, kGroup), 1), turn(qkv.narrow(2, kGroup, 1), 1),
            at::cat({turn(dq, -1), turn(dk, -1), dv}, 2)};
  };
}

Operation::Run prepare_products(const Problem& problem, torch::Dtype computed) {
  constexpr std::int64_t kExperts = 3, kOut = 24;
  const Tensor rows = random(problem, {problem.rows, problem.width}, computed);
  const Tensor matrices = random(problem, {kExperts, kOut, problem.width}, computed);
  const Tensor back = random(problem, {kExperts, problem.width, kOut}, computed);
  const std::vector<std::int64_t> counts{problem.rows / 2, 0, problem.rows - problem.rows / 2};
  return [=]() -> std::vector<Tensor> {
    const ExpertRows shares(counts, rows.device());
    return {expert_products(rows, matrices.transpose(1, 2), shares),
            expert_products(rows, back, shares)};
  };
}

// One matrix that decays, one vector that does not, a step late enough that both corrections matter; half of ATen's steps are
// on masters, whose values in `format` come after.
Operation::Run prepare_adamw(const Problem& problem, torch::Dtype computed) {
  const bool narrow = computed == torch::kBFloat16;
  // Steps of what the step before has left take as long as those of what is given; copies would count.
  const bool timed = problem.rows * problem.width > 1'000'000;
  const auto wide = gradient_type(computed);
  struct State {
    std::vector<kernels::AdamWPiece> pieces;
    kernels::AdamWGroup group;
  };
  const auto state = std::make_shared<State>();
  for (const std::int64_t count : {problem.rows * problem.width, problem.width}) {
    kernels::AdamWPiece piece;
    const Tensor value = random(problem, {count}, computed);
    piece.value = narrow ? value : value.to(wide);
    if (narrow) piece.master = value.to(wide);
    piece.gradient = random(problem, {count}, wide);
    piece.first = random(problem, {count}, wide);
    piece.second = random(problem, {count}, wide).square();
    piece.decays = state->pieces.empty();
    state->pieces.push_back(piece);
  }
  const auto number = [&](double value, torch::Dtype format) {
    return torch::full({}, value, torch::dtype(format)).to(problem.device);
  };
  const kernels::AdamWNumbers numbers{.beta1 = 0.9,
                                      .beta2 = 0.95,
                                      .epsilon = 1e-8,
                                      .weight_decay = 0.1,
                                      .rate = 0.02,
                                      .clip = number(0.75, torch::kFloat64),
                                      .count = number(3, torch::kFloat32),
                                      .skip = number(0, torch::kFloat32)};
  return [=]() -> std::vector<Tensor> {
    std::vector<Tensor> made;
    std::vector<kernels::AdamWPiece> pieces;
    for (const kernels::AdamWPiece& piece : state->pieces) {
      kernels::AdamWPiece copy = piece;
      for (Tensor* x : {&copy.value, &copy.gradient, &copy.first, &copy.second, &copy.master})
        if (x->defined() && !timed) *x = x->clone();
      pieces.push_back(copy);
    }
    if (kernels::wanted(pieces[0].value)) {
      state->group.step(pieces, numbers);
    } else {
      for (const kernels::AdamWPiece& piece : pieces) {
        const Tensor value = piece.master.defined() ? piece.master : piece.value;
        at::_fused_adamw_({value}, {piece.gradient.mul(numbers.clip)}, {piece.first},
                          {piece.second}, {}, {numbers.count}, numbers.rate, numbers.beta1,
                          numbers.beta2, piece.decays ? numbers.weight_decay : 0, numbers.epsilon,
                          false, false, {}, numbers.skip);
        if (piece.master.defined()) piece.value.copy_(piece.master);
      }
    }
    for (const kernels::AdamWPiece& piece : pieces) {
      made.insert(made.end(), {piece.value, piece.first, piece.second});
    }
    return made;
  };
}

}  // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all{
      gate(Activation::silu),
      gate(Activation::gelu),
      gate(Activation::clamped),
      {"RMSNorm", prepare_norm, 3},
      {"LayerNorm", prepare_layer_norm, 5},
      {"norm of heads", prepare_head_norm, 3, 128},
      {"cross-entropy", prepare_loss},
      {"experts' answers", prepare_combine},
      {"experts' products", prepare_products, 1, 4096, /*is_product=*/true},
      {"rotary positions", prepare_rotary, 3, 128},
      {"AdamW", prepare_adamw}};
  return all;
}

}  // namespace polyphony::exec::testing
