// bf16 weights and activations with fp32 gradients and master weights, compared with fp64 starting
// from the same bf16 weights.
//   u = 2⁻⁸, the unit roundoff of bf16's 8 significant bits; fp32's is 2⁻²⁴. To first order an
//   error is Σ over roundings of (amplification up to the result)·u, and bf16 rounds where fp32
//   does, so the expected error is the measured error in fp32 times 2¹⁶. Both are one draw of
//   random signs, so a factor of 4 between them is allowed. For the loss: √N·u, with N values
//   stored one after another in the forward pass, assumed independent and neither amplified nor
//   damped (residual paths, norms).
#include <cmath>
#include <mutex>

#include "exec/autograd/linear.h"
#include "exec/parameters/held_parameters.h"
#include "exec/transport/in_process.h"
#include "shared/chunk/expand.h"
#include "tests/exec/support/shards.h"
#include "tests/exec/support/tiny_model.h"
#include "tests/exec/support/update_terms.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

constexpr double kRoundoff = 0x1p-8, kRoundoffRatio = 0x1p16;
// A block stores 12 values one after another (norm, qkv, rotation, attention, out, sum, norm, up,
// activation, product, down, sum); four of them, 2 in the embedding, 3 in the projector, 3 at the
// head.
constexpr int kPath = 4 * 12 + 2 + 3 + 3;
const double kLossBound = std::sqrt(kPath) * kRoundoff;  // relative

// Pixels rounded to bf16, in `dtype`.
TestWork rounded(TestWork work, torch::Dtype dtype) {
  work.input.patches = work.input.patches.to(torch::kBFloat16).to(dtype);
  return work;
}

// A chain in `dtype` with the weights of a bf16 chain.
std::unique_ptr<Chain> chain_in(torch::Dtype dtype) {
  auto chain = std::make_unique<Chain>(whole_model(dtype), nullptr);
  for (LocalParameter* parameter : chain->parameters())
    parameter->value.copy_(initial_value(parameter->spec, {}, 1, torch::kBFloat16, true));
  return chain;
}

double relative(const Tensor& value, const Tensor& reference) {
  return ((value.to(torch::kFloat64) - reference).norm() / reference.norm()).item<double>();
}

// One layer with a weight of its own, run forward and backward.
struct Alone {
  std::vector<InnerCollective> none;
  InnerGroups groups{Communicators{}};
  Pass pass;
  LocalParameter weight, bias;
  Tensor x, dy;

  Alone(const std::vector<std::int64_t>& shape, std::int64_t rows, std::int64_t out)
      : pass{&groups, std::make_shared<WeightQueue>(),
             torch::zeros({}, torch::kBFloat16).requires_grad_(true)} {
    torch::manual_seed(5);
    const auto half = torch::dtype(torch::kBFloat16);
    weight.value = torch::randn(shape, half);
    bias.value = torch::randn({shape.front()}, half);
    for (LocalParameter* p : {&weight, &bias})
      p->grad = torch::zeros_like(p->value, torch::kFloat32);
    x = (torch::randn({rows, shape.back()}, half) + 3).requires_grad_(true);
    dy = torch::randn({rows, out}, half);
  }
  void run(const Tensor& y) {
    REQUIRE((y.scalar_type() == torch::kBFloat16));
    torch::autograd::backward({y}, {dy});
    pass.queue->run();
    REQUIRE((x.grad().scalar_type() == torch::kBFloat16));
    REQUIRE((weight.grad.scalar_type() == torch::kFloat32));
  }
  Tensor wide_x() const { return x.detach().to(torch::kFloat64); }
  Tensor wide_dy() const { return dy.to(torch::kFloat64); }
};

}  // namespace

TEST_SUITE("bf16") {
  TEST_CASE("loss and gradients equal those in fp64 up to bf16 rounding") {
    const TestWork work = uneven_work(torch::kFloat64);
    const auto play = [&](torch::Dtype dtype, double& loss) {
      auto chain = chain_in(dtype);
      loss = chain->forward(0, rounded(work, dtype).input).item<double>();
      chain->backward(0);
      return chain;
    };
    double loss = 0, single_loss = 0, exact_loss = 0;
    const auto bf16 = play(torch::kBFloat16, loss), fp32 = play(torch::kFloat32, single_loss),
               fp64 = play(torch::kFloat64, exact_loss);
    CHECK(std::abs(loss - exact_loss) < kLossBound * exact_loss);
    double worst = 0;
    for (std::size_t i = 0; i < fp64->parameters().size(); ++i) {
      const LocalParameter& ours = *bf16->parameters()[i];
      const Tensor exact = fp64->parameters()[i]->grad;
      CAPTURE(ours.spec.name);
      CHECK((ours.grad.scalar_type() == torch::kFloat32));
      const double error = relative(ours.grad, exact);
      CHECK(error < 4 * kRoundoffRatio * relative(fp32->parameters()[i]->grad, exact));
      worst = std::max(worst, error);
    }
    MESSAGE("worst relative gradient error ", worst);
    CHECK(worst > kRoundoff / 4);  // it did compute in bf16
    CHECK(worst < kPath * kRoundoff);
  }

  TEST_CASE("gradients of many microbatches are accumulated in fp32") {
    // 256 equal microbatches: a bf16 sum would stop growing once a term is below half of its last
    // bit.
    constexpr int kMany = 256;
    const TestWork work = rounded(text_only_work(torch::kFloat64), torch::kBFloat16);
    const auto once = chain_in(torch::kBFloat16), often = chain_in(torch::kBFloat16);
    const auto play = [&](Chain& chain, std::uint64_t id) {
      chain.forward(id, work.input);
      chain.backward(id);
    };
    play(*once, 0);
    for (int i = 0; i < kMany; ++i) play(*often, static_cast<std::uint64_t>(i));
    for (std::size_t i = 0; i < once->parameters().size(); ++i) {
      CAPTURE(once->parameters()[i]->spec.name);
      const Tensor sum = once->parameters()[i]->grad.to(torch::kFloat64) * kMany;
      if (sum.norm().item<double>() == 0) continue;  // no image, so no gradient
      // Each of 256 additions rounds by at most 2⁻²⁴ of the sum.
      CHECK(relative(often->parameters()[i]->grad, sum) < kMany * 0x1p-24);
    }
  }

  TEST_CASE("weight gradients are fp32 sums of products of bf16 numbers") {
    constexpr std::int64_t kRows = 500;
    // 16 times √rows·2⁻²⁴ (random signs); a GEMM or statistic in bf16 would be 100 times above
    // that.
    const double bound = 16 * std::sqrt(static_cast<double>(kRows)) * 0x1p-24;
    {
      Alone one({24, 32}, kRows, 24);
      one.run(column_linear(one.pass, one.x, &one.weight, &one.bias));
      CHECK(relative(one.weight.grad, one.wide_dy().t().mm(one.wide_x())) < bound);
      CHECK(relative(one.bias.grad, one.wide_dy().sum(0)) < bound);
    }
    {
      Alone one({32}, kRows, 32);
      one.run(rms_norm(one.pass, one.x, &one.weight));
      const Tensor x = one.wide_x();
      const Tensor scale = (x.square().mean(1, true) + kNormEpsilon).rsqrt();
      CHECK(relative(one.weight.grad, (one.wide_dy() * x * scale).sum(0)) < bound);
    }
    {
      Alone one({32}, kRows, 32);
      one.run(layer_norm(one.pass, one.x, &one.weight, &one.bias));
      const Tensor x = one.wide_x(), centred = x - x.mean(1, true);
      const Tensor scale = (centred.square().mean(1, true) + kNormEpsilon).rsqrt();
      CHECK(relative(one.weight.grad, (one.wide_dy() * centred * scale).sum(0)) < bound);
      CHECK(relative(one.bias.grad, one.wide_dy().sum(0)) < bound);
    }
  }

  TEST_CASE(
      "norms round once: output and input gradient are the nearest bf16 value or its neighbor") {
    Alone rms({32}, 100, 32), layer({32}, 100, 32);
    const auto check = [](Alone& one, const Tensor& y, const std::function<Tensor(Tensor)>& plain) {
      one.run(y);
      const Tensor x = one.wide_x().requires_grad_(true), wide = plain(x);
      torch::autograd::backward({wide}, {one.wide_dy()});
      const auto close = [](const Tensor& value, const Tensor& exact) {
        // Where terms cancel, the error is relative to the terms, not to the result.
        const Tensor error = (value.to(torch::kFloat64) - exact).abs();
        CHECK((error - exact.abs() * kRoundoff).max().item<double>() < 1e-5);
      };
      close(y.detach(), wide.detach());
      close(one.x.grad(), x.grad());
    };
    check(rms, rms_norm(rms.pass, rms.x, &rms.weight), [&](const Tensor& x) {
      return x * (x.square().mean(1, true) + kNormEpsilon).rsqrt() *
             rms.weight.value.to(torch::kFloat64);
    });
    check(layer, layer_norm(layer.pass, layer.x, &layer.weight, &layer.bias), [&](const Tensor& x) {
      return at::layer_norm(x, {32}, layer.weight.value.to(torch::kFloat64),
                            layer.bias.value.to(torch::kFloat64), kNormEpsilon);
    });
  }

  TEST_CASE("ten AdamW steps follow the fp32 curve") {
    const auto curve = [](torch::Dtype dtype) {
      const auto chain = chain_in(dtype);
      HeldParameters held(chain->parameters(), {});
      const TestWork work = rounded(uneven_work(torch::kFloat64), dtype);
      std::vector<double> losses;
      for (int step = 1; step <= 10; ++step) {
        losses.push_back(chain->forward(0, work.input).item<double>());
        chain->backward(0);
        held.step({}, 3e-3, update_terms(1.0, step));
      }
      return losses;
    };
    const std::vector<double> narrow = curve(torch::kBFloat16), wide = curve(torch::kFloat32);
    // The roundings of the forward pass, as above, at any point of the curve. Their effect on the
    // updates is second order: AdamW moves a weight by about the learning rate in any case.
    for (std::size_t i = 0; i < wide.size(); ++i)
      CHECK(std::abs(narrow[i] - wide[i]) < kLossBound * wide[0]);
    CHECK(wide.back() < 0.7 * wide.front());
    MESSAGE("fp32 ", wide.front(), " to ", wide.back(), ", bf16 ", narrow.front(), " to ",
            narrow.back());
  }

  TEST_CASE(
      "two tensor-parallel ranks: the collectives of expand() and the gradients of one rank") {
    const auto stages = whole_model(torch::kBFloat16);
    const TestWork work = rounded(uneven_work(torch::kFloat64), torch::kBFloat16);
    Chain whole(stages, nullptr);
    const double loss = whole.forward(0, work.input).item<double>();
    whole.backward(0);
    std::mutex mutex;
    run_in_process(2, [&](Transport& transport) {
      torch::set_num_threads(1);
      const auto group = transport.make_group("tensor", {Rank(0), Rank(1)});
      const ShardIndex place{.tensor = 2, .tensor_index = group->index()};
      Chain chain(stages, group.get());
      const double mine = chain.forward(0, work.input).item<double>();
      std::vector<std::vector<InnerCollective>> forward;
      for (std::size_t i = 0; i < 3; ++i) forward.push_back(chain[i].take_issued());
      chain.backward(0);
      const std::lock_guard lock(mutex);
      CHECK(std::abs(mine - loss) < kLossBound * loss);
      const WorkSize sizes[] = {work.vision, work.projector, work.language};
      for (std::size_t i = 0; i < 3; ++i) {
        const auto expected = [&](Phase phase) {
          return expand(stages[i].module, stages[i].layers, phase, sizes[i],
                        {.tp = 2,
                         .precision = NumberFormat::bf16,
                         .input_grad = stages[i].options.input_grad})
              .collectives;
        };
        CHECK((forward[i] == expected(Phase::forward)));
        CHECK((chain[i].take_issued() == expected(Phase::backward)));
      }
      // Sums of parts round differently than whole sums; both are within the roundings of the path.
      for (std::size_t i = 0; i < whole.parameters().size(); ++i) {
        const LocalParameter& one = *whole.parameters()[i];
        CAPTURE(one.spec.name);
        const Tensor expected = local_of(one.grad, one.spec, place).to(torch::kFloat64);
        CHECK(relative(chain.parameters()[i]->grad, expected) < kPath * kRoundoff);
      }
    });
  }
}
