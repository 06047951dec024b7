// Compares our kernels' arithmetic (exec/cuda) with ATen's forms: on CPUs here, and on a GPU if
// there is one.
//
// The reference is ATen's form in fp64 for the same inputs. The fused form in fp64 differs from it
// by fp64 roundings; in fp32 by fp32 roundings, at most 1e-6 of an element and of the tensor's
// typical element (sums cancel); in bf16 additionally by one rounding to bf16, 2⁻⁸ of an element.
// GEMMs are ATen's in both forms, and add `width` terms, so their tolerance is √width times as
// large.
#include <c10/core/Event.h>

#include <cmath>

#include "exec/autograd/glu.h"
#include "exec/experts/expert_products.h"
#include "exec/fused/adamw.h"
#include "exec/fused/cross_entropy.h"
#include "exec/on_device.h"
#include "tests/exec/fused/operation.h"
#include "tests/exec/support/gpu_or_double.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

namespace polyphony::exec::testing {

using kernels::Forms;
using torch::Tensor;

namespace {

constexpr double kOfFp64 = 1e-12, kOfFp32 = 1e-6, kOfBf16 = 0x1p-8;

// Returns the forms by which our kernels' arithmetic runs on the device.
Forms our_forms(torch::Device device) { return device.is_cuda() ? Forms::by_device : Forms::fused; }

std::vector<Tensor> run(const Operation& operation, const Problem& problem, torch::Dtype computed,
                        Forms forms) {
  torch::manual_seed(7);
  const auto once = operation.prepare(problem, computed);
  const FormsFor those(forms);
  return once();
}

// The largest error by what is allowed; NaNs must be where the reference has them.
double worst(const Tensor& value, const Tensor& reference, double terms) {
  if (reference.numel() == 0) return 0;
  const Tensor exact = reference.to(torch::kCPU, torch::kFloat64),
               found = value.to(torch::kCPU, torch::kFloat64);
  const Tensor same = exact.isnan().logical_and(found.isnan()).logical_or_(exact.eq(found));
  const bool narrow = value.scalar_type() == torch::kBFloat16;
  const double roundings =
      (value.scalar_type() == torch::kFloat64 ? kOfFp64 : kOfFp32) * std::sqrt(terms);
  const Tensor finite = exact.nan_to_num(0, 0, 0);
  const double typical =
      finite.norm().item<double>() / std::sqrt(static_cast<double>(exact.numel()));
  const Tensor allowed =
      finite.abs().mul(roundings + (narrow ? kOfBf16 : 0)).add_(roundings * typical);
  return found.sub(exact)
      .abs()
      .div_(allowed)
      .nan_to_num(1e9)
      .masked_fill_(same, 0)
      .max()
      .item<double>();
}

double worst(const Operation& operation, const Problem& problem) {
  const auto exact = run(operation, problem, torch::kFloat64, Forms::aten);
  const auto found = run(operation, problem, problem.format, our_forms(problem.device));
  REQUIRE(found.size() == exact.size());
  double most = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    CAPTURE(i);
    REQUIRE((found[i].sizes() == exact[i].sizes()));
    const double error =
        worst(found[i], exact[i], operation.is_product ? static_cast<double>(problem.width) : 1);
    CHECK(error <= 1);
    most = std::max(most, error);
  }
  return most;
}

void check_formats(torch::Device device) {
  // Nothing, less than a pack, packs with a rest, whole packs, more packs than a block has lanes.
  const std::vector<std::pair<std::int64_t, std::int64_t>> shapes{
      {0, 8}, {1, 1}, {3, 5}, {2, 8}, {7, 33}, {5, 64}, {4, 4200}};
  for (const Operation& operation : operations()) {
    CAPTURE(operation.name);
    for (const torch::Dtype format : {torch::kFloat64, torch::kFloat32, torch::kBFloat16}) {
      // The queued device runs the CPU's LayerNorm, whose statistics are bf16 as well.
      if (device.is_privateuseone() && format == torch::kBFloat16) continue;
      const std::string name = c10::toString(format);
      CAPTURE(name);
      double most = 0;
      for (const auto& [rows, width] : shapes) {
        if (width < operation.least_width) continue;
        CAPTURE(rows);
        CAPTURE(width);
        most = std::max(most, worst(operation, {rows, width, format, device}));
      }
      if (!device.is_cpu())
        MESSAGE(operation.name, " ", name, ": worst error ", most, " of what is allowed");
    }
  }
}

double milliseconds(const Operation& operation, const Problem& problem, Forms forms) {
  torch::manual_seed(7);
  const auto once = operation.prepare(problem, problem.format);
  const FormsFor those(forms);
  constexpr int kWarm = 5, kTimed = 20;
  const c10::Stream stream = current_stream(problem.device);
  c10::Event begin(problem.device.type(), c10::EventFlag::BACKEND_DEFAULT),
      end(problem.device.type(), c10::EventFlag::BACKEND_DEFAULT);
  for (int i = 0; i < kWarm; ++i) once();
  begin.record(stream);
  for (int i = 0; i < kTimed; ++i) once();
  end.record(stream);
  end.synchronize();
  return begin.elapsedTime(end) / kTimed;
}

}  // namespace

TEST_SUITE("fused kernels") {
  TEST_CASE("bodies compute the results of ATen's forms") { check_formats(torch::kCPU); }

  TEST_CASE("NaN and infinities propagate as in ATen's forms") {
    const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
    const auto numbers = [&](std::vector<double> all) {
      return torch::tensor(all, torch::kFloat64);
    };
    // Pairs of gate and up; the clamps' limits themselves, beyond them, and neither number nor finite.
    const Tensor pairs =
        numbers({nan, 1, 1, nan, inf, 1, -inf, 1, 1, inf, 7, 7, 7, -7, 8, -9, -800, 2, 0, 0})
            .view({2, 10});
    for (const Activation activation : {Activation::silu, Activation::clamped, Activation::gelu}) {
      const auto both = [&](Forms forms) {
        const FormsFor those(forms);
        const Tensor leaf = pairs.clone().requires_grad_(true);
        const Tensor y = glu(leaf, activation);
        torch::autograd::backward({y}, {torch::ones_like(y)});
        return std::pair{y.detach(), leaf.grad()};
      };
      const auto [y, dx] = both(Forms::fused);
      const auto [y_aten, dx_aten] = both(Forms::aten);
      CHECK(at::allclose(y, y_aten, 1e-12, 1e-12, /*equal_nan=*/true));
      // Of gelu it is ∞·0 by other products; ATen's clamps give a NaN no gradient on CPUs, and its own on GPUs.
      const Tensor compared =
          activation == Activation::silu ? torch::ones_like(pairs, torch::kBool) : pairs.isfinite();
      CHECK(at::allclose(dx.masked_select(compared), dx_aten.masked_select(compared), 1e-12, 1e-12,
                         true));
    }
    // Losses: a −∞ among others is no probability; a NaN or ∞ makes its row's loss none.
    const FormsFor fused(Forms::fused);
    const Tensor ids = torch::zeros({4}, torch::kInt64);
    const Tensor logits =
        numbers({1, -inf, 2, 1, nan, 2, 1, inf, 2, -inf, -inf, -inf}).view({4, 3});
    const auto [largest, sum, label] = kernels::logit_statistics(logits, ids, {});
    const Tensor losses = sum.log() + largest - label;
    CHECK(losses[0].item<double>() == doctest::Approx(std::log(std::exp(1) + std::exp(2)) - 1));
    CHECK(losses.narrow(0, 1, 3).isnan().all().item<bool>());
  }

  TEST_CASE("a skipped AdamW step changes nothing") {
    const FormsFor fused(Forms::fused);
    const auto ones = [] { return torch::ones({5}); };
    const kernels::AdamWPiece piece{.value = ones(),
                                    .gradient = ones(),
                                    .first = ones(),
                                    .second = ones(),
                                    .master = {},
                                    .decays = true};
    const auto step = [&](float skip) {
      kernels::AdamWGroup().step({piece}, {.beta1 = 0.9,
                                           .beta2 = 0.95,
                                           .epsilon = 0,
                                           .weight_decay = 0.5,
                                           .rate = 0.5,
                                           .clip = {},
                                           .count = torch::ones({}),
                                           .skip = torch::full({}, skip)});
    };
    step(1);
    for (const Tensor& x : {piece.value, piece.first, piece.second})
      CHECK(x.eq(1).all().item<bool>());
    // m = 1, v = 1; w = 1 − 0.5·0.5 − 0.5 · (1 ÷ 0.1) ÷ √(1 ÷ 0.05)
    step(0);
    CHECK(piece.value[4].item<double>() == doctest::Approx(0.75 - 5 * std::sqrt(0.05)));
  }

  TEST_CASE("the GEMMs of all experts are one launch if LibTorch has a kernel for them") {
    const auto format = torch::dtype(torch::kBFloat16);
    const Tensor rows = torch::zeros({6, 16}, format), matrices = torch::zeros({4, 24, 16}, format);
    const Tensor forward = matrices.transpose(1, 2);
    CHECK(is_grouped(rows, forward, 9));
    CHECK(is_grouped(rows, forward, 10));
    CHECK(!is_grouped(rows, forward, 8));   // it would wait for the host
    CHECK(!is_grouped(rows, forward, 12));  // likewise
    CHECK(!is_grouped(rows, forward, 0));
    CHECK(is_grouped(torch::zeros({6, 24}, format), matrices, 9));
    CHECK(!is_grouped(rows.to(torch::kFloat32), forward.to(torch::kFloat32), 9));
    CHECK(!is_grouped(rows.narrow(0, 0, 0), forward, 9));
    CHECK(!is_grouped(rows, forward.narrow(0, 0, 1), 9));  // a plain product
    // 12 elements are 24 bytes: a row that is no multiple of 16 bytes, of either matrix or of the product.
    CHECK(!is_grouped(torch::zeros({6, 12}, format), torch::zeros({4, 12, 16}, format), 9));
    CHECK(!is_grouped(rows, torch::zeros({4, 16, 12}, format), 9));
    CHECK(!is_grouped(rows, torch::zeros({4, 12, 16}, format).transpose(1, 2), 9));
    CHECK(!is_grouped(torch::zeros({97}, format).narrow(0, 1, 96).view({6, 16}), forward, 9));
  }
}

// What no test without a GPU proves: that kernels are launched as they should be. scripts/first_gpu_hour runs it.
TEST_SUITE("machine's GPU kernels") {
  TEST_CASE("kernels compute the results of ATen's forms, and both are timed") {
    const std::optional<torch::Device> device = gpu_or_double();
    if (!device) return;
    if (device->is_cuda() && !kernels::are_built()) {
      MESSAGE("this build has no kernels of its own: skipped");
      return;
    }
    check_formats(*device);
    const std::int64_t rows = device->is_cuda() ? 8192 : 8;
    const torch::Dtype format = device->is_cuda() ? torch::kBFloat16 : torch::kFloat32;
    for (const Operation& operation : operations()) {
      const Problem large{rows, operation.timed_width, format, *device};
      const double aten = milliseconds(operation, large, Forms::aten),
                   ours = milliseconds(operation, large, our_forms(*device));
      MESSAGE(operation.name, " of ", rows, " rows of ", operation.timed_width, ", ",
              std::string(c10::toString(format)), ": ", ours, " ms, ATen's form ", aten, " ms");
    }
  }
}

}  // namespace polyphony::exec::testing
