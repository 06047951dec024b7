// Stacks with different kinds of blocks: the kind of each block, and its parameters, kernels and
// saved activations.
#include <doctest/doctest.h>

#include "shared/chunk/expand.h"
#include "shared/chunk/parameters.h"
#include "shared/chunk/sizes.h"
#include "shared/layers/block.h"
#include "shared/model/presets.h"
#include "shared/program/work.h"
#include "shared/work/rows.h"

namespace polyphony {
namespace {

Module preset(const char* name) { return find_preset(name)->module; }

WorkSize one_sample(std::int64_t tokens) {
  return {.tokens = tokens,
          .pairs = tokens * (tokens + 1) / 2,
          .text_tokens = tokens,
          .loss_tokens = tokens,
          .sequences = 1,
          .samples = 1,
          .gathered = tokens};
}
LayerRange block(int index) {
  return {static_cast<std::uint16_t>(1 + index), static_cast<std::uint16_t>(2 + index)};
}
double flops(const Module& m, int index, Phase phase, const WorkSize& size, KernelKind kind) {
  double sum = 0;
  for (const Kernel& kernel : expand(m, block(index), phase, size, {}).kernels)
    if (kernel.kind == kind) sum += kernel.flops.value;
  return sum;
}
// Two key heads of width 4 with two value heads each; hidden size 8.
Module small_linear() {
  Module m;
  m.name = "language";
  m.layers = 2;
  m.hidden = 8;
  m.heads = m.kv_heads = 2;
  m.head_dim = 4;
  m.ffn = 16;
  m.gated = true;
  m.vocab = 32;
  m.mixers = {Mixer::linear, Mixer::full};
  m.linear_key_heads = 2;
  m.linear_value_heads = 4;
  m.linear_head_dim = 4;
  m.linear_conv = 4;
  return m;
}

Module small_convolution() {
  Module m = small_linear();
  m.mixers = {Mixer::convolution, Mixer::full};
  m.linear_key_heads = m.linear_value_heads = m.linear_head_dim = m.linear_conv = 0;
  m.short_conv = 3;
  return m;
}

// Checks that block 0 saves `row` fp32 numbers for each of ten rows, of which selective
// recomputation computes 8 again.
void check_tape(const Module& m, std::int64_t row) {
  const RankContext context(ChunkContext{});
  CHECK(tape_bytes(m, block(0), one_sample(10), context) == Bytes(4 * 10 * row));
  RankContext again = context;
  again.recompute = Recompute::selective;
  CHECK(tape_bytes(m, block(0), one_sample(10), again) == Bytes(4 * 10 * (row - 8)));
  CHECK(workspace_bytes(m, block(0), one_sample(10), again) == Bytes(4 * 10 * 8));
}

}  // namespace

TEST_CASE("the kind of each block follows from the repeated pattern") {
  const Module gemma = preset("gemma-3-4b"), oss = preset("gpt-oss-20b"),
               qwen = preset("qwen3-next-80b-a3b"), deepseek = preset("deepseek-v3");
  for (int i = 0; i < gemma.layers; ++i)
    CHECK((block_at(gemma, i).attention == AttentionKind::full) == (i % 6 == 5));
  CHECK(block_at(oss, 0).attention == AttentionKind::window);
  CHECK(block_at(oss, 1).attention == AttentionKind::full);
  CHECK(block_at(qwen, 2).attention == AttentionKind::linear);
  CHECK(block_at(qwen, 3).attention == AttentionKind::full);
  CHECK(block_at(deepseek, 2) == BlockKind{AttentionKind::latent, FeedForwardKind::dense});
  CHECK(block_at(deepseek, 3) == BlockKind{AttentionKind::latent, FeedForwardKind::experts});
}

TEST_CASE("sliding windows: pairs of rows") {
  Module m = preset("gpt-oss-20b");
  m.sliding_window = 3;
  const Model model{{m}, {}};
  const Batch batch{{{0, {{Modality::text, 5, 0}}}}};
  const std::uint32_t first = 0;
  const WorkSize size = work_size(model, ModuleId(0), batch, &first, 1);
  CHECK(size.window_pairs == 1 + 2 + 3 + 3 + 3);
  CHECK(layer_size(m, 1, size).pairs == 12);
  CHECK(layer_size(m, 2, size).pairs == 15);
  // 4 flops per pair and number, for 64 heads of width 64.
  CHECK(flops(m, 0, Phase::forward, size, KernelKind::attention) == 4.0 * 12 * 4096);
  CHECK(flops(m, 1, Phase::forward, size, KernelKind::attention) == 4.0 * 15 * 4096);
}

TEST_CASE("linear attention: weights of a block, counted by hand, and a rank's share") {
  // in: 2(2 + 4)4 + 2·4 = 56 rows; convolution (2·2 + 4)4 = 32 channels of 4; out 16 columns.
  std::int64_t attention = 0;
  for (const Parameter& p : parameters(small_linear(), block(0))) {
    const bool part = p.name.find("linear_") != std::string::npos ||
                      p.name.find("out.weight") != std::string::npos;
    if (part) attention += p.count();
  }
  CHECK(attention == 56 * 8 + 32 * 4 + 4 + 4 + 4 + 8 * 16);
  const ShardIndex half{.tensor = 2, .tensor_index = 1};
  const std::int64_t all = local_parameters(small_linear(), block(0), {}),
                     mine = local_parameters(small_linear(), block(0), half);
  // Replicated: two norms of 8 and the head norm of 4.
  CHECK(2 * (mine - 20) == all - 20);
}

TEST_CASE("linear attention: FLOPs grow with the rows, backward twice the forward") {
  const Module m = small_linear();
  const WorkSize size = one_sample(128);
  const double weights = 56 * 8 + 16 * 8 + 3 * 8 * 16;
  CHECK(flops(m, 0, Phase::forward, size, KernelKind::gemm) == 2 * 128 * weights);
  CHECK(flops(m, 0, Phase::backward, size, KernelKind::gemm) == 4 * 128 * weights);
  // Per row and value head, in chunks of 64: 8·64·4 + 6·4²; backward: the same again, plus twice
  // that.
  const double rule = 128.0 * 4 * (8 * 64 * 4 + 6 * 16);
  CHECK(flops(m, 0, Phase::forward, size, KernelKind::attention) == rule);
  CHECK(flops(m, 0, Phase::backward, size, KernelKind::attention) == 3 * rule);
  CHECK(flops(m, 0, Phase::forward, one_sample(256), KernelKind::attention) == 2 * rule);
}

TEST_CASE("linear attention: saved activations, counted by hand") {
  // A row in fp32: two norms' inputs and scales 2·(8 + 1), inputs of the two parts 2·8, the
  // feed-forward part 3·16; output of linear_in 56, input of the output matrix 16.
  const std::int64_t row = 18 + 16 + 48 + 56 + 16;
  const RankContext context(ChunkContext{});
  CHECK(tape_bytes(small_linear(), block(0), one_sample(128), context) == Bytes(4 * 128 * row));
}

TEST_CASE("short convolution: weights of a block, counted by hand, and a rank's share") {
  const Module m = small_convolution(), lfm2 = preset("lfm2-1.2b");
  CHECK(block_at(lfm2, 1).attention == AttentionKind::convolution);
  CHECK(block_at(lfm2, 2).attention == AttentionKind::full);
  // in 24 rows of 8, 8 channels of 3 taps, out 8 × 8; feed-forward 3·8·16; two norms.
  const std::int64_t parts = 24 * 8 + 8 * 3 + 8 * 8 + 3 * 8 * 16;
  const ShardIndex half{.tensor = 2, .tensor_index = 1};
  CHECK(local_parameters(m, block(0), {}) == parts + 16);
  CHECK(local_parameters(m, block(0), half) == parts / 2 + 16);
  for (const Parameter& p : parameters(m, block(0)))
    if (p.name == "language.block0.conv_in.weight")  // from channel 4 on: B, C and x
      CHECK(p.parts(half) == std::vector<Interval>{{12, 24}});
}

TEST_CASE("short convolution: kernels and collectives by hand") {
  const Module m = small_convolution();
  const WorkSize size = one_sample(10);
  const double weights = 24 * 8 + 8 * 8 + 3 * 8 * 16;
  CHECK(flops(m, 0, Phase::forward, size, KernelKind::gemm) == 2 * 10 * weights);
  CHECK(flops(m, 0, Phase::backward, size, KernelKind::gemm) == 4 * 10 * weights);
  CHECK(flops(m, 0, Phase::forward, size, KernelKind::attention) == 0);
  // Besides the kernels of an attention block: gates 3 + 3 and taps 3·3 of 8 channels in fp32;
  // backward: these again, gates 6 + 6, convolution 6·3.
  const auto passes = [&](Phase phase) {
    std::int64_t bytes = 0;
    for (const Kernel& kernel : expand(m, block(0), phase, size, {}).kernels)
      if (kernel.kind == KernelKind::elementwise) bytes += kernel.bytes.value;
    return bytes;
  };
  // Per row: norms 2·8 twice, residual sums 3·8 twice, SwiGLU 5·16; backward: 3·8 four times,
  // 13·16, weights of norms 2·8 twice.
  CHECK(passes(Phase::forward) == 4 * 10 * ((6 + 9) * 8 + 80 + 80));
  CHECK(passes(Phase::backward_input) == 4 * 10 * ((6 + 9 + 12 + 18) * 8 + 96 + 208 + 32));
  ChunkContext cut;
  cut.tp = 2;
  // After the second matrix of each part, and, backward, after the first: 10 rows of 8 each.
  for (const Phase phase : {Phase::forward, Phase::backward_input}) {
    const auto sums = expand(m, block(0), phase, size, cut).collectives;
    REQUIRE(sums.size() == 2);
    for (const InnerCollective& sum : sums) {
      CHECK(sum.kind == CollectiveKind::all_reduce);
      CHECK(sum.bytes == Bytes(4 * 10 * 8));
    }
  }
}

TEST_CASE("short convolution: saved activations, counted by hand") {
  const Module m = small_convolution();
  // A row in fp32: two norms' inputs and scales 2·(8 + 1), inputs of the two parts 2·8, the
  // feed-forward part 3·16; output of conv_in 24, input of the output matrix 8.
  const std::int64_t row = 18 + 16 + 48 + 24 + 8;
  check_tape(m, row);
}

TEST_CASE("short convolution: layouts that are not possible are refused") {
  const BlockPart& part = block_part(AttentionKind::convolution);
  Module m = small_convolution();
  ModuleLayout layout;
  CHECK(part.refused(m, layout) == "");
  layout.cp = 2;
  CHECK(part.refused(m, layout).starts_with(
      "cp 2 is not supported with short convolutions: a rank of a context"));
  layout.cp = 1;
  layout.tp = 2;
  CHECK(part.refused(m, layout) == "");
  m.hidden = 9;
  CHECK(part.refused(m, layout) == "tp must divide the 9 channels (got tp 2)");
}

TEST_CASE("latent attention: saved activations, counted by hand") {
  Module m = small_linear();
  m.mixers = {};
  m.key_value_rank = 6;
  m.query_rank = 5;
  m.rotary_dim = 2;
  m.value_dim = 3;
  // A row in fp32: norms 18, inputs 16, feed-forward 48; latents before and after their norms
  // 2·(6 + 2) and 2·5, two scales; of 2 heads q of 4 + 2, k and v of 4 + 3; the output 2·3 and 2
  // log-sum-exps.
  const std::int64_t row = 18 + 16 + 48 + 16 + 10 + 2 + 2 * (6 + 7) + 6 + 2;
  check_tape(m, row);
}

TEST_CASE("an attention gate is in the same matrix as the queries") {
  Module plain = small_linear(), gated = small_linear();
  gated.attention_gate = true;
  CHECK(parameter_count(gated) - parameter_count(plain) == 8 * 8);
  for (const Parameter& p : parameters(gated, block(1)))
    if (p.cut == Cut::heads) CHECK(p.group_heads == 2);
}

}  // namespace polyphony
