// Attention on a device: the choice of kernel, the number of calls, and results, compared with a
// softmax over a dense mask.
#include <numeric>

#include "exec/attention/attention.h"
#include "exec/attention_calls/attention_kernel.h"
#include "exec/attention_calls/cudnn_attention.h"
#include "exec/attention_calls/heads_attention.h"
#include "exec/autograd/in_order.h"
#include "tests/exec/device_double/attention_kernels.h"
#include "tests/exec/device_double/queued_device.h"
#include "tests/exec/support/dense_mask.h"
#include "tests/exec/support/gpu_or_double.h"
#include "tests/shared/support/random_masks.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

namespace polyphony::exec::testing {

namespace {

using torch::Tensor;
using Kind = test::RandomMask::Kind;

constexpr std::int64_t kDeviceTokens = 260, kDeviceHeads = 2, kDeviceGroup = 3;

// Device, format, widths of keys and values, and tokens.
struct Setting {
  torch::Device device = queued_device(0);
  torch::Dtype dtype = torch::kFloat64;
  std::int64_t width = 4, values = 3, tokens = kDeviceTokens;
};

// Relative errors of the output, the sums, and the gradients of q, k and v.
struct Errors {
  double out, sums, q, k, v;
  double worst() const { return std::max({out, sums, q, k, v}); }
};

// `parts`: the keys are processed in these parts.
Errors errors(const TokenMask& mask, std::int64_t window, const std::vector<Interval>& own,
              const std::vector<std::vector<Interval>>& parts, const Setting& setting) {
  const auto [device, dtype, width, values, tokens] = setting;
  const auto wide = torch::TensorOptions(torch::kFloat64);
  const auto random = [&,
                       dtype = dtype](at::IntArrayRef shape) {  // values that the format represents
    return torch::randn(shape, wide).to(dtype).to(torch::kFloat64).requires_grad_(true);
  };
  const std::int64_t rows = rows_of(own).numel();
  const Tensor q = random({kDeviceHeads, kDeviceGroup, rows, width}),
               k = random({kDeviceHeads, 1, tokens, width}),
               v = random({kDeviceHeads, 1, tokens, values});
  const Tensor dy = random({kDeviceHeads, kDeviceGroup, rows, values}).detach();
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
      "cuDNN's kernels are chosen for rectangles of one shape, where they are safe and fast") {
    using enum AttentionKernel;
    const KernelNeeds due{.width = 128,
                          .longest_queries = 8192,
                          .longest_keys = 8192,
                          .right = 0,
                          .alike = true,
                          .capability = 9,
                          .cudnn = 91900};
    const auto with = [&](const auto& change) {
      KernelNeeds needs = due;
      change(needs);
      return kernel_for(needs);
    };
    CHECK(kernel_for(due) == cudnn);
    CHECK(with([](KernelNeeds& n) { n.dtype = torch::kHalf; }) == cudnn);
    CHECK(with([](KernelNeeds& n) { n.capability = 10; }) == cudnn);
    CHECK(with([](KernelNeeds& n) { n.right = -1; }) == cudnn);
    // Queries of one rank and keys of another: whole rectangles only.
    const auto oblong = [](KernelNeeds& n) { n.longest_keys = 4096, n.square = false; };
    CHECK(with(oblong) == flash);
    CHECK(with([&](KernelNeeds& n) { oblong(n), n.right = -1; }) == cudnn);
    for (const int capability : {8, 11, 12})
      CHECK(with([&](KernelNeeds& n) { n.capability = capability; }) == flash);
    CHECK(with([](KernelNeeds& n) { n.cudnn = 91500; }) == flash);
    CHECK(with([](KernelNeeds& n) { n.width = 136; }) == flash);
    CHECK(with([](KernelNeeds& n) { n.dtype = torch::kFloat32; }) == efficient);
    CHECK(with([](KernelNeeds& n) { n.left = 7; }) == flash);
    CHECK(with([](KernelNeeds& n) { n.alike = false; }) == flash);
    CHECK(with([](KernelNeeds& n) { n.in_order = true; }) == flash);
    // A tile of 128 rows that is not full.
    CHECK(with([](KernelNeeds& n) { n.longest_queries = n.longest_keys = 8256; }) == flash);
    CHECK(with([](KernelNeeds& n) { n.longest_queries = n.longest_keys = 128; }) == flash);
    allow_cudnn(false);
    CHECK(kernel_for(due) == flash);
    CHECK(attention_in_words(9, 91900) == "flash attention");
    allow_cudnn(true);
    CHECK(attention_in_words(9, 91900) ==
          "attention by cuDNN 9.19.0 where lengths are equal, else flash");
    CHECK(attention_in_words(9, 91500) == "flash attention");
    CHECK(attention_in_words(8, 91900) == "flash attention");
    CHECK(attention_in_words(7, 91900) == "no flash attention");
    keep_order(true);
    CHECK(attention_in_words(9, 91900) == "flash attention");
    keep_order(false);
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
    const std::vector<Interval> own = {{10, 60}, {130, 131}, {200, kDeviceTokens}};
    const std::vector<std::vector<Interval>> at_once = {{{0, kDeviceTokens}}};
    const std::vector<std::vector<Interval>> in_turn = {own, {{0, 10}, {60, 130}}, {{131, 200}}};
    const std::vector<std::vector<Interval>> split = {{{0, 90}, {90, 180}, {180, kDeviceTokens}}};
    for (const AttentionKernel kernel : {AttentionKernel::cudnn, AttentionKernel::flash,
                                         AttentionKernel::efficient, AttentionKernel::plain})
      for (const Kind kind : {Kind::causal_blocks, Kind::prefix, Kind::prefix_documents,
                              Kind::embedded, Kind::packed})
        for (const std::int64_t window : {0, 7, 100})
          for (const auto& parts : {at_once, in_turn, split}) {
            CAPTURE(static_cast<int>(kernel));
            CAPTURE(static_cast<int>(kind));
            CAPTURE(window);
            CAPTURE(parts.size());
            const Preferred preferred(kernel);
            forget_cudnn_plans();
            const TokenMask mask = test::RandomMask::make(kind, kDeviceTokens, 11);
            CHECK(errors(mask, window, own, parts, {}).worst() < 1e-12);
          }
  }

  TEST_CASE("samples of one length are one call of cuDNN, alone or joined with others") {
    torch::manual_seed(7);
    const Preferred preferred(AttentionKernel::cudnn);
    const std::vector<std::int64_t> lengths(4, 65);
    const auto calls_of = [&](bool causal, const std::vector<std::vector<Interval>>& parts) {
      CAPTURE(causal);
      CAPTURE(parts.size());
      forget_cudnn_plans();
      queued::take_cudnn_calls();
      // Widths that are padded, and widths that are not.
      for (const auto& [width, values] : {std::pair{4, 3}, {16, 16}})
        CHECK(errors(mask_of(lengths, causal), 0, {{0, 260}}, parts,
                     {.width = width, .values = values})
                  .worst() < 1e-12);
      const queued::CudnnCalls calls = queued::take_cudnn_calls();
      CHECK(calls.forward == calls.backward);
      return calls.forward / 2;
    };
    CHECK(calls_of(true, {{{0, 260}}}) == 1);
    CHECK(calls_of(false, {{{0, 260}}}) == 1);
    // Keys of two other ranks: rectangles of 65 x 65 and 65 x 65. Halves of samples: without a
    // mask 65 x 30 and 65 x 35; with it the upper half's diagonal begins at another query.
    CHECK(calls_of(true, {{{0, 130}}, {{130, 260}}}) == 2);
    const std::vector<std::vector<Interval>> halves = {
        {{0, 30}, {65, 95}, {130, 160}, {195, 225}}, {{30, 65}, {95, 130}, {160, 195}, {225, 260}}};
    CHECK(calls_of(false, halves) == 2);
    CHECK(calls_of(true, halves) > 0);
  }

  TEST_CASE("bf16 takes cuDNN by itself for whole tiles, and only the first shapes get plans") {
    torch::manual_seed(8);
    const auto calls_of = [](std::int64_t length, int samples) {
      const std::vector<std::int64_t> lengths(samples, length);
      const std::int64_t tokens = length * samples;
      const std::vector<Interval> all = {{0, tokens}};
      queued::take_cudnn_calls();
      CHECK(errors(mask_of(lengths, true), 0, all, {all},
                   {.dtype = torch::kBFloat16, .width = 16, .values = 16, .tokens = tokens})
                .worst() < 0.01);
      const queued::CudnnCalls calls = queued::take_cudnn_calls();
      CHECK(calls.forward == calls.backward);
      return calls.forward;
    };
    forget_cudnn_plans();
    CHECK(calls_of(256, 1) == 1);
    CHECK(calls_of(256, 2) == 1);
    CHECK(calls_of(320, 1) == 0);
    CHECK(calls_of(128, 2) == 0);
    keep_order(true);
    CHECK(calls_of(256, 1) == 0);
    keep_order(false);
    // Batches of other sizes are other shapes; the process has two.
    const Preferred preferred(AttentionKernel::cudnn);
    for (int samples = 1; samples <= int(kMostCudnnPlans) - 2; ++samples)
      CHECK(calls_of(4, samples) == 1);
    CHECK(calls_of(5, 1) == 0);
    CHECK(calls_of(4, 1) == 1);
    forget_cudnn_plans();
    CHECK(calls_of(5, 1) == 1);
  }

  TEST_CASE("the double of cuDNN's kernels refuses what the real ones refuse or get wrong") {
    const auto of = torch::TensorOptions(torch::kBFloat16).device(queued_device(0));
    const auto batch = [&](std::int64_t heads, std::int64_t rows, std::int64_t width) {
      return at::zeros({2, rows, heads, width}, of).transpose(1, 2);
    };
    const auto forward = [&](const Tensor& q, const Tensor& k, bool causal,
                             std::optional<Tensor> starts = {}) {
      return at::_cudnn_attention_forward(q, k, k, {}, starts, starts, q.size(2), k.size(2), true,
                                          0.0, causal, false, 0.25);
    };
    const Tensor q = batch(4, 32, 16), k = batch(2, 32, 16);
    const auto made = forward(q, k, true);
    CHECK(std::get<1>(made).sizes() == at::IntArrayRef({2, 4, 32, 1}));
    CHECK_THROWS(forward(q, batch(3, 32, 16), true));  // heads
    CHECK_THROWS(forward(q, batch(2, 48, 16), true));  // diagonal
    CHECK_NOTHROW(forward(q, batch(2, 48, 16), false));
    CHECK_THROWS(forward(batch(4, 32, 12), batch(2, 32, 12), true));    // width
    CHECK_THROWS(forward(batch(4, 32, 264), batch(2, 32, 264), true));  // width
    CHECK_THROWS(forward(q, batch(2, 1, 16), false));                   // one key
    CHECK_THROWS(forward(q.to(torch::kFloat32), k.to(torch::kFloat32), true));
    CHECK_THROWS(forward(batch(4, 32, 24).narrow(3, 4, 16), k, true));    // alignment
    CHECK_THROWS(forward(q, k, true, torch::zeros({3}, torch::kInt32)));  // packed lengths
    const auto backward = [&](const Tensor& dy, const Tensor& sums, torch::Dtype seed) {
      const Tensor state = at::empty({}, of.dtype(seed));
      return at::_cudnn_attention_backward(dy, q, k, k, std::get<0>(made), sums, state, state, {},
                                           {}, {}, 32, 32, 0.0, true, 0.25);
    };
    const Tensor sums = std::get<1>(made);
    CHECK_NOTHROW(backward(batch(4, 32, 16), sums, torch::kInt64));
    CHECK_THROWS(backward(batch(4, 32, 16), sums, torch::kInt32));
    CHECK_THROWS(backward(batch(4, 32, 16), sums.squeeze(3), torch::kInt64));
    // A stored plan is for the layouts of its first call.
    CHECK_THROWS(backward(batch(4, 32, 16).contiguous(), sums, torch::kInt64));
    at::globalContext().setDeterministicAlgorithms(true, false);
    CHECK_THROWS(backward(batch(4, 32, 16), sums, torch::kInt64));
    at::globalContext().setDeterministicAlgorithms(false, false);
    // Calls bring gradients of any layout into that of the plan.
    const Preferred preferred(AttentionKernel::cudnn);
    forget_cudnn_plans();
    const PackedCall call = packed({24, 24}, 0, {{0, 48}}).at(0);
    const auto rows = [&](std::int64_t heads) { return at::zeros({48, heads, 16}, of); };
    const PackedHeads heads{rows(4), rows(2), rows(2)};
    const PackedOut attended = attend_call(heads, call);
    const Tensor by_row = rows(4), by_head = at::zeros({4, 48, 16}, of).transpose(0, 1);
    for (const Tensor& dy : {by_row, by_head, by_row})
      CHECK_NOTHROW(attend_call_backward(dy, heads, attended, call));
    drain(queued_device(0));
  }

  TEST_CASE("single and half precision use their kernels") {
    torch::manual_seed(6);
    const TokenMask mask = test::RandomMask::make(Kind::packed, kDeviceTokens, 3);
    const std::vector<Interval> all = {{0, kDeviceTokens}};
    CHECK(errors(mask, 0, all, {all}, {.dtype = torch::kFloat32}).worst() < 1e-5);
    // Half the distance between numbers of 8 bits is 2⁻⁹ = 0.002; weights and results are rounded.
    CHECK(errors(mask, 0, all, {all}, {.dtype = torch::kBFloat16}).worst() < 0.01);
    CHECK(errors(mask, 7, all, {all}, {.dtype = torch::kBFloat16}).worst() < 0.01);
  }

  TEST_CASE(
      "gradients are summed in one order if requested, and other operators are not affected") {
    const TokenMask mask = test::RandomMask::make(Kind::packed, kDeviceTokens, 3);
    const std::vector<Interval> all = {{0, kDeviceTokens}};
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
    const std::optional<torch::Device> device = gpu_or_double();
    if (!device) return;
    torch::manual_seed(5);
    const std::vector<Interval> own = {{10, 60}, {130, 131}, {200, kDeviceTokens}};
    for (const Kind kind :
         {Kind::causal_blocks, Kind::prefix, Kind::prefix_documents, Kind::embedded, Kind::packed})
      for (const std::int64_t window : {0, 7, 100})
        for (const std::vector<std::vector<Interval>>& parts :
             {std::vector<std::vector<Interval>>{{{0, kDeviceTokens}}},
              {own, {{0, 10}, {60, 130}}, {{131, 200}}},
              {{{0, 90}, {90, 180}, {180, kDeviceTokens}}}})
          for (const auto& [width, values] :
               {std::pair{4, 3}, {64, 64}, {128, 128}, {192, 128}, {256, 256}, {264, 264}}) {
            if (!device->is_cuda() && (width > 64 || window > 7))
              continue;  // these are plain kernels
            CAPTURE(static_cast<int>(kind));
            CAPTURE(window);
            CAPTURE(parts.size());
            CAPTURE(width);
            const TokenMask mask = test::RandomMask::make(kind, kDeviceTokens, 11);
            forget_cudnn_plans();
            const auto worst = [&, width = width, values = values](torch::Dtype dtype) {
              return errors(mask, window, own, parts, {*device, dtype, width, values}).worst();
            };
            // fp32: GEMMs of three parts with 10 bits each; bf16: weights and results with 8 bits;
            // fp64: its own rounding.
            CHECK(worst(torch::kFloat32) < 1e-4);
            CHECK(worst(torch::kBFloat16) < 0.02);
            CHECK(worst(torch::kFloat64) < 1e-12);
          }
  }
  TEST_CASE("cuDNN's attention kernels, alone or joined, and flash give the same results") {
    const torch::Device device = choose_device("", LaunchEnv{});
    if (device.is_cpu()) {
      MESSAGE("this machine or this build has no GPU: skipped");
      return;
    }
    torch::manual_seed(9);
    for (const bool allowed : {true, false})
      for (const bool causal : {true, false})
        for (const auto& [length, samples] : {std::pair{512, 1}, {256, 3}, {1024, 2}})
          for (const int width : {64, 88, 128}) {
            CAPTURE(allowed);
            CAPTURE(causal);
            CAPTURE(length);
            CAPTURE(width);
            MESSAGE(attention_in_words(device));
            allow_cudnn(allowed);
            const std::int64_t tokens = length * samples, half = length * ((samples + 1) / 2);
            const TokenMask mask = mask_of(std::vector<std::int64_t>(samples, length), causal);
            const std::vector<Interval> all = {{0, tokens}};
            for (const std::vector<std::vector<Interval>>& parts :
                 {std::vector<std::vector<Interval>>{all}, {{{0, half}}, {{half, tokens}}}}) {
              if (parts.back().front().size() == 0) continue;
              CHECK(errors(mask, 0, all, parts, {device, torch::kBFloat16, width, width, tokens})
                        .worst() < 0.02);
            }
          }
    allow_cudnn(true);
    forget_cudnn_plans();
  }
}

}  // namespace polyphony::exec::testing
