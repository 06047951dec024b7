#include "shared/chunk/expand.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "shared/program/work.h"
#include "shared/scenario/typical_batch.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

using examples::llama_70b;
using examples::projector_12b_70b;
using examples::vision_12b;

constexpr LayerRange kFirstBlock{1, 2};
// Weights of one Llama-70B block: q and out 2·8192·8192, k and v 2·8192·1024, gate, up and down
// 3·8192·28672.
constexpr double kBlockWeights = 2.0 * 8192 * 8192 + 2.0 * 8192 * 1024 + 3.0 * 8192 * 28672;

WorkSize text(std::int64_t tokens) {
  return {.tokens = tokens,
          .pairs = tokens * (tokens + 1) / 2,
          .text_tokens = tokens,
          .loss_tokens = tokens,
          .sequences = 1};
}
WorkSize images(std::int64_t count, std::int64_t patches) {
  return {.tokens = count * patches,
          .pairs = count * patches * patches,
          .text_tokens = 0,
          .loss_tokens = 0,
          .sequences = static_cast<std::int32_t>(count)};
}
LayerRange whole(const Module& module) {
  return {0, static_cast<std::uint16_t>(layers(module).size())};
}

using Kind = CollectiveKind;

}  // namespace

TEST_CASE(
    "a decoder block costs 2 FLOPs per weight and token, and 4 per attending pair and attention "
    "width") {
  const WorkSize size = text(4096);
  const double attention = 4.0 * 4096 * 4097 / 2 * 64 * 128;
  const double forward = 2 * kBlockWeights * 4096 + attention;
  const ChunkContext context{.precision = NumberFormat::bf16};
  CHECK(total_flops(expand(llama_70b(), kFirstBlock, Phase::forward, size, context)).value ==
        doctest::Approx(forward));
  // Backward: input and weight gradient of every GEMM, and twice the attention.
  CHECK(total_flops(expand(llama_70b(), kFirstBlock, Phase::backward, size, context)).value ==
        doctest::Approx(2 * forward));
  CHECK(
      total_flops(expand(llama_70b(), kFirstBlock, Phase::backward_weight, size, context)).value ==
      doctest::Approx(2 * kBlockWeights * 4096));
  // 8 tensor-parallel ranks have equal shares (8 divides 64 heads, 8 key/value heads and 28672).
  const ChunkContext shared{.tp = 8, .precision = NumberFormat::bf16};
  CHECK(total_flops(expand(llama_70b(), kFirstBlock, Phase::forward, size, shared)).value ==
        doctest::Approx(forward / 8));
}

TEST_CASE("a vision block attends inside each image in both directions") {
  // 4·5120² + 2·5120·20480 weights; 8 images of 1024 patches: 8·1024² pairs of width 5120.
  const double weights = 4.0 * 5120 * 5120 + 2.0 * 5120 * 20480;
  const double forward = 2 * weights * 8192 + 4.0 * 8 * 1024 * 1024 * 5120;
  CHECK(total_flops(expand(vision_12b(), kFirstBlock, Phase::forward, images(8, 1024), {})).value ==
        doctest::Approx(forward));
}

TEST_CASE("the 12B + 70B example needs 4.4e18 FLOPs per step") {
  // Forward, per sample of 8192 positions, 6144 of them text with a label:
  //   language blocks 2·80·855,638,016·8192 + 4·80·(8192·8193/2)·8192, head 2·128256·8192·6144
  //   vision blocks   2·11.95e9·8192 + 4·38·8·1024²·5120, patches 2·588·5120·8192; projector
  //   2·(20480·8192 + 8192²)·2048
  // Backward twice that, without the input gradient of the patches; 1024 samples.
  const Scenario scenario = examples::vlm_on_h100();
  const Batch batch = typical_batch(scenario);
  const std::uint32_t first = 0;
  double total = 0;
  for (std::size_t m = 0; m < 3; ++m) {
    const Module& module = scenario.model.modules[m];
    const WorkSize size = work_size(scenario.model, ModuleId(m), batch, &first, 1);
    ModuleLayout alone;
    const ChunkContext context =
        chunk_context(scenario.model, ModuleId(m), 0, alone, NumberFormat::bf16);
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      total += 1024 * total_flops(expand(module, whole(module), phase, size, context)).value;
    }
  }
  const double language = 2 * 80 * kBlockWeights * 8192 + 4.0 * 80 * (8192.0 * 8193 / 2) * 8192 +
                          2.0 * 128256 * 8192 * 6144;
  const double vision_blocks =
      2 * 38 * (4.0 * 5120 * 5120 + 2.0 * 5120 * 20480) * 8192 + 4.0 * 38 * 8 * 1024 * 1024 * 5120;
  const double patches = 2.0 * 588 * 5120 * 8192,
               projector = 2.0 * (20480.0 * 8192 + 8192.0 * 8192) * 2048;
  CHECK(total ==
        doctest::Approx(1024 * (3 * (language + vision_blocks + projector) + 2 * patches)));
  CHECK(total == doctest::Approx(4.4e18).epsilon(0.01));
  // 45 % of 512 · 989e12 FLOP/s: about 19.5 s.
  CHECK(total / (512 * 989e12 * 0.45) == doctest::Approx(19.5).epsilon(0.02));
}

TEST_CASE("a block has two inner collectives each way, none for weights or with one rank") {
  const WorkSize size = text(100);
  const ChunkContext context{.tp = 4, .precision = NumberFormat::fp32};
  const InnerCollective sum{Kind::all_reduce, Bytes(100 * 8192 * 4)};
  const std::vector<InnerCollective> two = {sum, sum};
  for (const Phase phase :
       {Phase::forward, Phase::recompute, Phase::backward_input, Phase::backward}) {
    CHECK(expand(llama_70b(), kFirstBlock, phase, size, context).collectives == two);
  }
  CHECK(
      expand(llama_70b(), kFirstBlock, Phase::backward_weight, size, context).collectives.empty());
  CHECK(expand(llama_70b(), kFirstBlock, Phase::forward, size, {}).collectives.empty());
  // The gradient of the first norm needs the input gradient of qkv even if the chunk's input
  // gradient is not needed.
  const ChunkContext first{.tp = 4, .precision = NumberFormat::fp32, .input_grad = false};
  CHECK(expand(llama_70b(), kFirstBlock, Phase::backward, size, first).collectives == two);
}

TEST_CASE("inner collectives of embedding, head and projector") {
  const ChunkContext context{.tp = 4, .precision = NumberFormat::bf16};
  WorkSize size = text(100);
  size.text_tokens = 60;
  size.loss_tokens = 7;
  const LayerRange embedding{0, 1}, head{81, 82};
  CHECK(expand(llama_70b(), embedding, Phase::forward, size, context).collectives ==
        std::vector<InnerCollective>{{Kind::all_reduce, Bytes(60 * 8192 * 2)}});
  CHECK(expand(llama_70b(), embedding, Phase::backward, size, context).collectives.empty());
  // The loss is computed in fp32 or wider: 4 bytes per row.
  CHECK(expand(llama_70b(), head, Phase::forward, size, context).collectives ==
        std::vector<InnerCollective>{{Kind::all_reduce_max, Bytes(28)},
                                     {Kind::all_reduce, Bytes(28)},
                                     {Kind::all_reduce, Bytes(28)}});
  CHECK(expand(llama_70b(), head, Phase::backward, size, context).collectives ==
        std::vector<InnerCollective>{{Kind::all_reduce, Bytes(7 * 8192 * 2)}});

  const WorkSize rows{.tokens = 10, .pairs = 0, .text_tokens = 0, .loss_tokens = 0, .sequences = 1};
  CHECK(expand(projector_12b_70b(), {0, 1}, Phase::forward, rows, context).collectives ==
        std::vector<InnerCollective>{{Kind::all_reduce, Bytes(10 * 8192 * 2)}});
  CHECK(expand(projector_12b_70b(), {0, 1}, Phase::backward, rows, context).collectives ==
        std::vector<InnerCollective>{{Kind::all_reduce, Bytes(10 * 20480 * 2)}});
  ChunkContext frozen_before = context;
  frozen_before.input_grad = false;
  CHECK(expand(projector_12b_70b(), {0, 1}, Phase::backward, rows, frozen_before)
            .collectives.empty());
}

TEST_CASE("a microbatch without rows issues the same collectives, without bytes") {
  const ChunkContext context{.tp = 2, .precision = NumberFormat::fp32};
  const Expansion empty = expand(vision_12b(), {0, 40}, Phase::forward, {}, context);
  CHECK(empty.collectives ==
        std::vector<InnerCollective>(76, {Kind::all_reduce, Bytes(0)}));  // 2 × 38 blocks
  CHECK(total_flops(empty).value == 0);
}

TEST_CASE("backward equals its two parts, and recompute equals forward") {
  const WorkSize size = text(32);
  const ChunkContext context{.tp = 2, .precision = NumberFormat::fp32};
  const Module module = llama_70b();
  const auto sum = [&](Phase phase) {
    return total_flops(expand(module, whole(module), phase, size, context)).value;
  };
  CHECK(sum(Phase::backward) ==
        doctest::Approx(sum(Phase::backward_input) + sum(Phase::backward_weight)));
  CHECK(expand(module, whole(module), Phase::recompute, size, context) ==
        expand(module, whole(module), Phase::forward, size, context));
  const auto kernels = [&](Phase phase) {
    return expand(module, whole(module), phase, size, context).kernels.size();
  };
  CHECK(kernels(Phase::backward) ==
        kernels(Phase::backward_input) + kernels(Phase::backward_weight));
}

TEST_CASE("frozen modules") {
  const WorkSize size = text(16);
  const ChunkContext passes{.input_grad = true, .weight_grad = false};
  const double forward =
      total_flops(expand(llama_70b(), kFirstBlock, Phase::forward, size, passes)).value;
  const double attention = 4.0 * 16 * 17 / 2 * 64 * 128;
  // Input gradients only: each GEMM once, attention twice.
  CHECK(total_flops(expand(llama_70b(), kFirstBlock, Phase::backward, size, passes)).value ==
        doctest::Approx(forward + attention));
  const ChunkContext nothing{.input_grad = false, .weight_grad = false};
  CHECK(expand(llama_70b(), kFirstBlock, Phase::backward, size, nothing).kernels.empty());

  // Vision is frozen and the projector trained: the first GEMM of the projector needs no input
  // gradient, the layers of the language module do.
  Scenario scenario = examples::vlm_on_h100();
  scenario.model.modules[0].trainable = Trainable::frozen;
  const ModuleLayout alone;
  CHECK_FALSE(chunk_context(scenario.model, ModuleId(1), 0, alone, NumberFormat::bf16).input_grad);
  CHECK(chunk_context(scenario.model, ModuleId(2), 0, alone, NumberFormat::bf16).input_grad);
  CHECK_FALSE(chunk_context(scenario.model, ModuleId(0), 5, alone, NumberFormat::bf16).input_grad);
  const WorkSize rows{.tokens = 10, .pairs = 0, .text_tokens = 0, .loss_tokens = 0, .sequences = 1};
  const ChunkContext first =
      chunk_context(scenario.model, ModuleId(1), 0, alone, NumberFormat::bf16);
  // fc1: weight gradient; fc2: input and weight gradient.
  CHECK(total_flops(expand(projector_12b_70b(), {0, 1}, Phase::backward, rows, first)).value ==
        doctest::Approx(2.0 * 10 * (20480.0 * 8192 + 2 * 8192.0 * 8192)));
}

TEST_CASE("the bytes of a GEMM are those of its operands and its result, once each") {
  const Expansion block =
      expand(llama_70b(), kFirstBlock, Phase::forward, text(64), {.precision = NumberFormat::bf16});
  // down: [64, 28672] × [28672, 8192].
  const auto down = std::find_if(block.kernels.begin(), block.kernels.end(),
                                 [](const Kernel& kernel) { return kernel.k == 28672; });
  REQUIRE(down != block.kernels.end());
  CHECK(down->bytes == Bytes(2 * (64 * 28672 + 28672 * 8192 + 64 * 8192)));
  CHECK(down->flops.value == 2.0 * 64 * 28672 * 8192);
}

}  // namespace polyphony
