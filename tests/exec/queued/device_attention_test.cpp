// Attention on a device: the choice of kernel, the number of calls, and results, compared with a
// softmax over a dense mask.
#include <numeric>

#include "exec/attention/attention.h"
#include "exec/attention_calls/attention_kernel.h"
#include "exec/attention_calls/heads_attention.h"
#include "exec/autograd/in_order.h"
#include "exec/device/device.h"
#include "tests/exec/device_double/attention_kernels.h"
#include "tests/exec/device_double/queued_device.h"
#include "tests/exec/support/dense_mask.h"
#include "tests/shared/support/random_masks.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

namespace polyphony::exec::testing {

namespace {

using torch::Tensor;
using Kind = test::RandomMask::Kind;

constexpr std::int64_t kTokens = 260, kHeads = 2, kGroup = 3;

// Device, format, and widths of keys and values.
struct Setting {
  torch::Device device = queued_device(0);
  torch::Dtype dtype = torch::kFloat64;
  std::int64_t width = 4, values = 3;
};

// Relative errors of the output, the sums, and the gradients of q, k and v.
struct Errors {
  double out, sums, q, k, v;
  double worst() const { return std::max({out, sums, q, k, v}); }
};

// `parts`: the keys are processed in these parts.
Errors errors(const TokenMask& mask, std::int64_t window, const std::vector<Interval>& own,
              const std::vector<std::vector<Interval>>& parts, const Setting& setting) {
  const auto [device, dtype, width, values] = setting;
  const auto wide = torch::TensorOptions(torch::kFloat64);
  const auto random = [&,
                       dtype = dtype](at::IntArrayRef shape) {  // values that the format represents
    return torch::randn(shape, wide).to(dtype).to(torch::kFloat64).requires_grad_(true);
  };
  const std::int64_t rows = rows_of(own).numel();
  const Tensor q = random({kHeads, kGroup, rows, width}), k = random({kHeads, 1, kTokens, width}),
               v = random({kHeads, 1, kTokens, values});
  const Tensor dy = random({kHeads, kGroup, rows, values}).detach();
  const Tensor scores = torch::matmul(q, k.transpose(2, 3)) / std::sqrt(double(width)) +
                        dense(mask, window).index_select(0, rows_of(own));
  const Tensor wanted = torch::matmul(scores.softmax(3), v);
  wanted.backward(dy);

  const torch::NoGradGuard no_grad;
  const std::vector<Rectangle> all = rectangles(mask, window);
  const auto there = [&, dtype = dtype, device = device](const Tensor& x) {
    return x.detach().to(dtype).to(device);
  };
  std::vector<HeadTensors> heads;
  std::vector<std::vector<PackedCall>> calls;
  const Tensor queries = there(q), slope = there(dy);
  for (const std::vector<Interval>& part : parts) {
    const Tensor keys = rows_of(part);
    heads.push_back({queries, there(k.index_select(2, keys)), there(v.index_select(2, keys))});
  }
  const bool counts = device.is_privateuseone();
  if (counts) take_counts(device);
  Attended made;
  std::vector<HeadTensors> gradients;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    calls.push_back(pack_calls(all, own, parts[i], device));
    const Attended more = attend(heads[i], calls[i]);
    if (made.out.defined())
      join(made, more);
    else
      made = {more.out.to(more.sums.scalar_type()).clone(), more.sums.clone()};
  }
  const Attended plain{made.out.to(dtype), made.sums};
  for (std::size_t i = 0; i < parts.size(); ++i)
    gradients.push_back(attend_backward(slope, heads[i], plain, calls[i]));
  if (counts) CHECK(take_counts(device).host_waits() == 0);
  const auto here = [](const Tensor& x) { return x.cpu().to(torch::kFloat64); };
  Tensor dq = torch::zeros_like(q), dk = torch::zeros_like(k), dv = torch::zeros_like(v);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    dq += here(gradients[i].queries);
    dk.index_add_(2, rows_of(parts[i]), here(gradients[i].keys));
    dv.index_add_(2, rows_of(parts[i]), here(gradients[i].values));
  }
  return {off(here(plain.out), wanted), off(here(made.sums), scores.logsumexp(3)),
          off(dq, q.grad()), off(dk, k.grad()), off(dv, v.grad())};
}

std::vector<PackedCall> packed(const std::vector<std::int64_t>& lengths, std::int64_t window,
                               const std::vector<Interval>& own) {
  return pack_calls(rectangles(mask_of(lengths, true), window), own,
                    {{0, std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})}},
                    queued_device(0));
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE("attention kernels are chosen by format, width and bounds") {
    using enum AttentionKernel;
    const auto kernel = [](torch::Dtype dtype, std::int64_t width, std::int64_t left,
                           std::int64_t right, std::int64_t queries, std::int64_t keys) {
      return kernel_for({dtype, width, queries, keys, left, right, queries == keys});
    };
    CHECK(kernel(torch::kBFloat16, 128, -1, 0, 9, 9) == flash);
    CHECK(kernel(torch::kHalf, 256, -1, -1, 9, 5) == flash);
    CHECK(kernel(torch::kBFloat16, 257, -1, 0, 5, 9) == efficient);
    CHECK(kernel(torch::kFloat32, 64, -1, 0, 5, 9) == efficient);
    CHECK(kernel(torch::kFloat32, 64, -1, -1, 5, 9) == efficient);
    CHECK(kernel(torch::kFloat64, 64, -1, 0, 9, 9) == plain);
    const auto kernel_on = [](int capability, torch::Dtype dtype) {
      return kernel_for({.dtype = dtype, .capability = capability});
    };
    CHECK(kernel_on(7, torch::kBFloat16) == plain);
    CHECK(kernel_on(7, torch::kHalf) == efficient);
    CHECK(kernel_on(7, torch::kFloat32) == efficient);
    for (const int capability : {0, 8, 9, 10, 12})
      CHECK(kernel_on(capability, torch::kBFloat16) == flash);
    // Windows: for flash all that it does not interpret as no window; for efficient, causal windows
    // with equally many queries and keys.
    CHECK(kernel(torch::kBFloat16, 64, 3, 0, 9, 9) == flash);
    CHECK(kernel(torch::kBFloat16, 64, 3, 3, 9, 9) == flash);
    CHECK(kernel(torch::kBFloat16, 64, 20, 9, 30, 9) == plain);
    CHECK(kernel(torch::kBFloat16, 64, 3, -1, 10, 9) == flash);
    CHECK(kernel(torch::kBFloat16, 64, 3, -1, 11, 9) == plain);
    CHECK(kernel(torch::kFloat32, 64, 3, 0, 9, 9) == efficient);
    CHECK(kernel(torch::kFloat32, 64, 3, 0, 5, 9) == plain);
    CHECK(kernel(torch::kFloat32, 64, 3, 3, 9, 9) == plain);
  }

  TEST_CASE(
      "packed samples and windows are one call without padding; a rank's two chunks are two "
      "calls") {
    // Samples of 5, 1 and 7 tokens.
    std::vector<PackedCall> calls = packed({5, 1, 7}, 0, {{0, 13}});
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].queries.are(13));
    CHECK(calls[0].keys.are(13));
    CHECK(calls[0].queries.longest == 7);
    CHECK(calls[0].left == -1);
    CHECK(calls[0].right == 0);
    CHECK(torch::equal(calls[0].queries.starts.cpu(), torch::tensor({0, 5, 6, 13}, torch::kInt32)));
    // A window of 4 lets a query see three keys before its own.
    calls = packed({5, 1, 7}, 4, {{0, 13}});
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].left == 3);
    CHECK(calls[0].right == 0);
    // Rows 0, 1 and 6 of a sample of 7, and rows 3 to 5 of another: the last chunk of the first
    // sample sees keys that its first chunk saw. Rows 3 to 5 see 2 and 3 to 5 as the last of six
    // keys.
    calls = packed({7, 6}, 0, {{0, 2}, {6, 7}, {10, 13}});
    REQUIRE(calls.size() == 2);
    CHECK(torch::equal(calls[0].queries.some.cpu(), torch::tensor({0, 1, 3, 4, 5})));
    CHECK(torch::equal(calls[0].keys.some.cpu(), torch::tensor({0, 1, 7, 8, 9, 10, 11, 12})));
    CHECK(torch::equal(calls[0].keys.starts.cpu(), torch::tensor({0, 2, 8}, torch::kInt32)));
    CHECK(calls[0].right == 0);
    CHECK(calls[1].queries.interval == Interval{2, 3});
    CHECK(calls[1].keys.interval == Interval{0, 7});
    CHECK(calls[1].fresh);
    // A window of 5, keys 0 and 1 of other ranks, queries 2 to 6: 2 to 4 see both keys, 5 sees the
    // last one.
    calls = pack_calls(rectangles(mask_of({7}, true), 5), {{2, 7}}, {{0, 2}}, queued_device(0));
    REQUIRE(calls.size() == 2);
    CHECK(calls[0].queries.interval == Interval{0, 3});
    CHECK(calls[0].left == -1);
    CHECK(calls[1].queries.interval == Interval{3, 4});
    CHECK(calls[1].keys.interval == Interval{1, 2});
  }

  TEST_CASE("every kernel over every kind of mask, keys at once or joined, without a host wait") {
    torch::manual_seed(5);
    const std::vector<Interval> own = {{10, 60}, {130, 131}, {200, kTokens}};
    const std::vector<std::vector<Interval>> at_once = {{{0, kTokens}}};
    const std::vector<std::vector<Interval>> in_turn = {own, {{0, 10}, {60, 130}}, {{131, 200}}};
    const std::vector<std::vector<Interval>> split = {{{0, 90}, {90, 180}, {180, kTokens}}};
    for (const AttentionKernel kernel :
         {AttentionKernel::flash, AttentionKernel::efficient, AttentionKernel::plain})
      for (const Kind kind : {Kind::causal_blocks, Kind::prefix, Kind::prefix_documents,
                              Kind::embedded, Kind::packed})
        for (const std::int64_t window : {0, 7, 100})
          for (const auto& parts : {at_once, in_turn, split}) {
            CAPTURE(static_cast<int>(kernel));
            CAPTURE(static_cast<int>(kind));
            CAPTURE(window);
            CAPTURE(parts.size());
            const Preferred preferred(kernel);
            const TokenMask mask = test::RandomMask::make(kind, kTokens, 11);
            CHECK(errors(mask, window, own, parts, {}).worst() < 1e-12);
          }
  }

  TEST_CASE("single and half precision use their kernels") {
    torch::manual_seed(6);
    const TokenMask mask = test::RandomMask::make(Kind::packed, kTokens, 3);
    const std::vector<Interval> all = {{0, kTokens}};
    CHECK(errors(mask, 0, all, {all}, {.dtype = torch::kFloat32}).worst() < 1e-5);
    // Half the distance between numbers of 8 bits is 2⁻⁹ = 0.002; weights and results are rounded.
    CHECK(errors(mask, 0, all, {all}, {.dtype = torch::kBFloat16}).worst() < 0.01);
    CHECK(errors(mask, 7, all, {all}, {.dtype = torch::kBFloat16}).worst() < 0.01);
  }

  TEST_CASE(
      "gradients are summed in one order if requested, and other operators are not affected") {
    const TokenMask mask = test::RandomMask::make(Kind::packed, kTokens, 3);
    const std::vector<Interval> all = {{0, kTokens}};
    const Preferred flash(AttentionKernel::flash);
    for (const bool keeps : {true, false}) {
      keep_order(keeps);
      CHECK(errors(mask, 0, all, {all}, {}).worst() < 1e-12);
      CHECK(queued::summed_in_order() == keeps);
      CHECK_FALSE(at::globalContext().deterministicAlgorithms());
    }
  }
}

// Run by scripts/first_gpu_hour: the real kernels.
TEST_SUITE("machine's GPU") {
  TEST_CASE("attention kernels over every kind of mask, windows, keys at once, joined or split") {
    const torch::Device device = choose_device("", LaunchEnv{});
    if (device.is_cpu()) {
      MESSAGE("this machine or this build has no GPU: skipped");
      return;
    }
    torch::manual_seed(5);
    const std::vector<Interval> own = {{10, 60}, {130, 131}, {200, kTokens}};
    for (const Kind kind :
         {Kind::causal_blocks, Kind::prefix, Kind::prefix_documents, Kind::embedded, Kind::packed})
      for (const std::int64_t window : {0, 7, 100})
        for (const std::vector<std::vector<Interval>>& parts :
             {std::vector<std::vector<Interval>>{{{0, kTokens}}},
              {own, {{0, 10}, {60, 130}}, {{131, 200}}},
              {{{0, 90}, {90, 180}, {180, kTokens}}}})
          for (const auto& [width, values] :
               {std::pair{4, 3}, {64, 64}, {128, 128}, {192, 128}, {256, 256}, {264, 264}}) {
            CAPTURE(static_cast<int>(kind));
            CAPTURE(window);
            CAPTURE(parts.size());
            CAPTURE(width);
            const TokenMask mask = test::RandomMask::make(kind, kTokens, 11);
            const auto worst = [&, width = width, values = values](torch::Dtype dtype) {
              return errors(mask, window, own, parts, {device, dtype, width, values}).worst();
            };
            // fp32: GEMMs of three parts with 10 bits each; bf16: weights and results with 8 bits;
            // fp64: its own rounding.
            CHECK(worst(torch::kFloat32) < 1e-4);
            CHECK(worst(torch::kBFloat16) < 0.02);
            CHECK(worst(torch::kFloat64) < 1e-12);
          }
  }
}

}  // namespace polyphony::exec::testing
