// Linear layers with FP8 GEMMs, compared with plain references that make the same casts
// (tests/exec/reference/plain_fp8.h), in fp64: nothing but the casts rounds.
#include <mutex>

#include "exec/autograd/linear.h"
#include "exec/autograd/weight_products.h"
#include "exec/transport/in_process.h"
#include "tests/exec/fused/operation.h"
#include "tests/exec/reference/plain_fp8.h"
#include "tests/exec/reference/plain_model.h"
#include "tests/exec/support/shards.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

namespace polyphony::exec::testing {

namespace {

using torch::Tensor;

constexpr Fp8Scaling kScalings[] = {Fp8Scaling::tensorwise, Fp8Scaling::rowwise};

double relative(const Tensor& value, const Tensor& exact) {
  return ((value.to(torch::kFloat64) - exact).norm() / exact.norm()).item<double>();
}

struct Weight {
  LocalParameter parameter, bias;
  explicit Weight(const Tensor& value, Fp8Scaling scaling) {
    parameter.value = value;
    parameter.grad = torch::zeros_like(value);
    parameter.fp8 = scaling;
    bias.value = torch::randn({value.size(0)}, value.options());
    bias.grad = torch::zeros_like(bias.value);
  }
};

// Blocks whose matrices, cut over up to four ranks, can be computed in FP8.
std::vector<Stage> fp8_model(torch::Dtype dtype, Fp8Scaling scaling) {
  std::vector<Stage> stages = whole_model(dtype);
  Module &vision = stages[0].module, &language = stages[2].module;
  vision.hidden = 16;
  vision.head_dim = 16;
  vision.ffn = 64;
  stages[1].module.projector_in = 4 * 16;
  language.head_dim = 8;
  language.ffn = 64;
  for (Stage& stage : stages) stage.options.fp8 = scaling;
  return stages;
}
// A reference takes samples alone, and scales depend on the rows that are cast together.
TestWork one_sample(torch::Dtype dtype) { return make_work({{{16}, 6, 4}}, dtype, 5); }

}  // namespace

TEST_SUITE("fp8") {
  TEST_CASE("a linear layer makes the products of a plain one with the same casts") {
    for (const Fp8Scaling scaling : kScalings)
      for (const bool row : {false, true}) {
        torch::manual_seed(6);
        const Tensor x = torch::randn({37, 48}, torch::kFloat64).requires_grad_(true),
                     w = torch::randn({32, 48}, torch::kFloat64).requires_grad_(true),
                     dy = torch::randn({37, 32}, torch::kFloat64);
        Weight ours(w.detach().clone(), scaling);
        const Tensor plain_x = x.detach().requires_grad_(true);
        const Tensor wanted = plain_fp8_linear(plain_x, w, scaling) + ours.bias.value;
        torch::autograd::backward({wanted}, {dy});
        InnerGroups groups{Communicators{}};
        const Pass pass{&groups, std::make_shared<WeightQueue>(),
                        torch::zeros({}, torch::kFloat64).requires_grad_(true)};
        const Tensor y = row ? row_linear(pass, x, &ours.parameter, &ours.bias)
                             : column_linear(pass, x, &ours.parameter, &ours.bias);
        torch::autograd::backward({y}, {dy});
        pass.queue->run();
        CHECK(relative(y.detach(), wanted.detach()) < 1e-14);
        CHECK(relative(x.grad(), plain_x.grad()) < 1e-14);
        CHECK(relative(ours.parameter.grad, w.grad()) < 1e-14);
        CHECK(relative(ours.bias.grad, dy.sum(0)) < 1e-14);
        // It did round: e4m3 has three bits behind the point, e5m2 two.
        const Tensor exact = dy.t().mm(x.detach());
        CHECK(relative(ours.parameter.grad, exact) > 0x1p-7);
        CHECK(relative(ours.parameter.grad, exact) < 0x1p-3);
      }
  }

  TEST_CASE("a large weight gradient is added in blocks") {
    torch::manual_seed(7);
    const std::int64_t in = 4096, out = 2064;  // 64.5 MiB in fp64: two blocks
    Weight ours(torch::zeros({out, in}, torch::kFloat64), Fp8Scaling::rowwise);
    ours.parameter.grad.fill_(0.5);
    const Tensor x = torch::randn({16, in}, torch::kFloat64),
                 dy = torch::randn({16, out}, torch::kFloat64);
    add_weight_gradient(ours.parameter, dy, x);
    const auto cast = [](const Tensor& t) {
      return plain_cast(t.t().contiguous(), torch::kFloat8_e4m3fn, Fp8Scaling::rowwise);
    };
    CHECK(relative(ours.parameter.grad, cast(dy).mm(cast(x).t()) + 0.5) < 1e-14);
  }

  TEST_CASE("a model makes the loss and the gradients of a plain one with the same casts") {
    for (const Fp8Scaling scaling : kScalings) {
      CAPTURE(name(scaling));
      const auto stages = fp8_model(torch::kFloat64, scaling);
      const TestWork work = one_sample(torch::kFloat64);
      Chain chain(stages, nullptr);
      int in_fp8 = 0;
      for (const LocalParameter* parameter : chain.parameters())
        in_fp8 += parameter->fp8 != Fp8Scaling::off;
      CHECK(in_fp8 == 2 * 4 + 2 * 4);  // qkv, out and two of each feed-forward part
      const double loss = chain.forward(0, work.input).item<double>();
      chain.backward_split(0);
      const PlainResult plain = plain_model(stages, work);
      CHECK(std::abs(loss - plain.loss) < 1e-12 * plain.loss);
      for (const LocalParameter* parameter : chain.parameters()) {
        CAPTURE(parameter->spec.name);
        const Tensor& wanted = plain.gradients.at(parameter->spec.name);
        if (wanted.norm().item<double>() > 1e-12) CHECK(relative(parameter->grad, wanted) < 1e-10);
      }
      // Without FP8 it is another loss.
      Chain exact(fp8_model(torch::kFloat64, Fp8Scaling::off), nullptr);
      CHECK(std::abs(exact.forward(0, work.input).item<double>() - loss) > 1e-6 * loss);
    }
  }

  TEST_CASE("recomputed activations are cast to the same bits") {
    const auto gradients = [](Recompute recompute) {
      auto stages = fp8_model(torch::kBFloat16, Fp8Scaling::tensorwise);
      for (Stage& stage : stages) stage.options.recompute = recompute;
      const TestWork work = one_sample(torch::kBFloat16);
      Chain chain(stages, nullptr);
      chain.forward(0, work.input);
      chain.backward(0);
      std::vector<Tensor> all;
      for (const LocalParameter* parameter : chain.parameters()) all.push_back(parameter->grad);
      return all;
    };
    const auto kept = gradients(Recompute::none), again = gradients(Recompute::full);
    for (std::size_t i = 0; i < kept.size(); ++i) CHECK(kept[i].equal(again[i]));
  }
}

}  // namespace polyphony::exec::testing
