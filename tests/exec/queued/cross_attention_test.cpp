// Cross-attention of items to their conditioning rows, on a device and on CPUs, compared with a
// softmax for each item.
#include "exec/attention/cross_attention.h"

#include <numeric>

#include "exec/attention_calls/kernel_choice.h"
#include "tests/exec/device_double/attention_kernels.h"
#include "tests/exec/device_double/queued_device.h"
#include "tests/exec/support/dense_mask.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

namespace polyphony::exec::testing {

namespace {

using torch::Tensor;
using Lengths = std::vector<std::int64_t>;

constexpr std::int64_t kCrossHeads = 3;

// Reference by the definition: one item after another; items without conditioning read nothing.
Tensor read_alone(const Tensor& query, const Tensor& key_value, const Lengths& lengths,
                  const Lengths& conditions, std::int64_t width) {
  std::vector<Tensor> outs{query.narrow(0, 0, 0) +
                           key_value.sum() * 0};  // so that all have gradients
  std::int64_t row = 0, from = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Tensor q =
        query.narrow(0, row, lengths[i]).view({-1, kCrossHeads, width}).transpose(0, 1);
    const Tensor both = key_value.narrow(0, from, conditions[i]).view({-1, kCrossHeads, 2, width});
    const Tensor k = both.select(2, 0).transpose(0, 1), v = both.select(2, 1).transpose(0, 1);
    const Tensor weights =
        torch::matmul(q, k.transpose(1, 2)).div(std::sqrt(double(width))).softmax(2);
    outs.push_back(torch::matmul(weights, v).transpose(0, 1).reshape({-1, kCrossHeads * width}));
    row += lengths[i];
    from += conditions[i];
  }
  return torch::cat(outs);
}

// Returns the largest relative error of the output and of both gradients.
double error(const Lengths& lengths, const Lengths& conditions, torch::Device device,
             torch::Dtype dtype, std::int64_t width) {
  const auto rows = [](const Lengths& all) {
    return std::accumulate(all.begin(), all.end(), std::int64_t{0});
  };
  const auto random = [&](std::int64_t count, std::int64_t columns) {
    return torch::randn({count, columns}, torch::kFloat64).to(dtype).to(torch::kFloat64);
  };
  const Tensor query = random(rows(lengths), kCrossHeads * width).requires_grad_(true),
               key_value = random(rows(conditions), 2 * kCrossHeads * width).requires_grad_(true),
               dy = random(rows(lengths), kCrossHeads * width);
  const Tensor wanted = read_alone(query, key_value, lengths, conditions, width);
  wanted.backward(dy);
  const auto there = [&](const Tensor& x) { return x.detach().to(dtype).to(device); };
  const Tensor q = there(query).requires_grad_(true), kv = there(key_value).requires_grad_(true),
               slope = there(dy);
  const auto calls = plan_cross(lengths, conditions, device);
  const bool counts = device.is_privateuseone();
  if (counts) take_counts(device);
  const Tensor out = cross_attention(q, kv, calls, width);
  out.backward(slope);
  if (counts) CHECK(take_counts(device).host_waits() == 0);
  const auto apart = [](const Tensor& made, const Tensor& exact) {
    const Tensor here = made.detach().cpu().to(torch::kFloat64);
    return exact.norm().item<double>() == 0 ? here.norm().item<double>() : off(here, exact);
  };
  return std::max({apart(out, wanted.detach()), apart(q.grad(), query.grad()),
                   apart(kv.grad(), key_value.grad())});
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE(
      "items attend to their conditioning rows in one call, also items without rows or "
      "conditions") {
    torch::manual_seed(9);
    const torch::Device cpu = torch::kCPU, device = queued_device(0);
    const std::vector<std::pair<Lengths, Lengths>> works{
        {{5, 7, 1}, {4, 9, 1}},              // one call of all rows
        {{5, 0, 7, 3, 1}, {4, 6, 0, 9, 1}},  // rows and conditioning without a call
        {{0, 4}, {3, 0}},
        {{6}, {3}},
        {{}, {}}};
    for (const auto& [lengths, conditions] : works) {
      CAPTURE(lengths.size());
      std::size_t met = 0;
      for (std::size_t i = 0; i < lengths.size(); ++i) met += lengths[i] > 0 && conditions[i] > 0;
      CHECK(plan_cross(lengths, conditions, device)->packed.size() ==
            std::min<std::size_t>(1, met));
      CHECK(plan_cross(lengths, conditions, cpu)->each.size() == met);
      CHECK(error(lengths, conditions, cpu, torch::kFloat64, 5) < 1e-12);
      CHECK(error(lengths, conditions, cpu, torch::kFloat32, 8) < 1e-5);
      for (const AttentionKernel kernel : {AttentionKernel::cudnn, AttentionKernel::flash,
                                           AttentionKernel::efficient, AttentionKernel::plain}) {
        CAPTURE(static_cast<int>(kernel));
        const Preferred preferred(kernel);
        CHECK(error(lengths, conditions, device, torch::kFloat64, 5) < 1e-12);
      }
      // Kernels by format and width: fp64 plain, fp32 efficient, bf16 flash up to width 256; the
      // rounding error of bf16 is 2⁻⁹.
      CHECK(error(lengths, conditions, device, torch::kFloat64, 8) < 1e-12);
      CHECK(error(lengths, conditions, device, torch::kFloat32, 12) < 1e-5);
      CHECK(error(lengths, conditions, device, torch::kBFloat16, 16) < 0.02);
      CHECK(error(lengths, conditions, device, torch::kBFloat16, 264) < 0.02);
    }
  }
}

}  // namespace polyphony::exec::testing
