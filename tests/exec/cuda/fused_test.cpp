// Our kernels' arithmetic (exec/cuda) beside ATen's forms: on CPUs here, on a GPU where there is one.
//   The reference is ATen's form in fp64 of the same inputs. Fused in fp64 differs from it by roundings of fp64; in fp32 by
//   those of fp32, at most 1e-6 of an element and of what is typical of its tensor (sums cancel); in bf16 by one
//   rounding to it, 2⁻⁸ of an element, besides those of fp32.
#include <c10/core/Event.h>

#include <cmath>

#include "exec/network/device.h"
#include "exec/on_device.h"
#include "tests/exec/cuda/operation.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

namespace polyphony::exec::testing {

using kernels::Forms;
using torch::Tensor;

namespace {

constexpr double kOfFp64 = 1e-12, kOfFp32 = 1e-6, kOfBf16 = 0x1p-8;

std::vector<Tensor> run(const Operation& operation, const Problem& problem, torch::Dtype computed,
                        Forms forms) {
  torch::manual_seed(7);
  const auto once = operation.prepare(problem, computed);
  const FormsFor those(forms);
  return once();
}

// The largest error by what is allowed; NaNs must be where the reference has them.
double worst(const Tensor& value, const Tensor& reference) {
  if (reference.numel() == 0) return 0;
  const Tensor exact = reference.to(torch::kCPU, torch::kFloat64),
               found = value.to(torch::kCPU, torch::kFloat64);
  const Tensor same = exact.isnan().logical_and(found.isnan()).logical_or_(exact.eq(found));
  const bool narrow = value.scalar_type() == torch::kBFloat16;
  const double roundings = value.scalar_type() == torch::kFloat64 ? kOfFp64 : kOfFp32;
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
  const auto found = run(operation, problem, problem.format,
                         problem.device.is_cpu() ? Forms::fused : Forms::by_device);
  REQUIRE(found.size() == exact.size());
  double most = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    CAPTURE(i);
    REQUIRE((found[i].sizes() == exact[i].sizes()));
    const double error = worst(found[i], exact[i]);
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
  TEST_CASE("bodies compute what ATen's forms do") { check_formats(torch::kCPU); }
}

// What no test without a GPU proves: that kernels are launched as they should be. scripts/first_gpu_hour runs it.
TEST_SUITE("machine's GPU kernels") {
  TEST_CASE("kernels compute what ATen's forms do, and how long both take") {
    const torch::Device device = choose_device("", LaunchEnv{});
    if (device.is_cpu() || !kernels::are_built()) {
      MESSAGE("this machine or this build has no GPU, or the build no kernels: skipped");
      return;
    }
    check_formats(device);
    for (const Operation& operation : operations()) {
      const Problem large{8192, 4096, torch::kBFloat16, device};
      const double aten = milliseconds(operation, large, Forms::aten),
                   ours = milliseconds(operation, large, Forms::by_device);
      MESSAGE(operation.name, " of 8192 rows of 4096, bf16: ", ours, " ms, ATen's form ", aten,
              " ms");
    }
  }
}

}  // namespace polyphony::exec::testing
