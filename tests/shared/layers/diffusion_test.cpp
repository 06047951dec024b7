// A diffusion module without running it: parameters, kernels, collectives and bytes.
#include <doctest/doctest.h>

#include <cmath>

#include "shared/chunk/expand.h"
#include "shared/chunk/parameters.h"
#include "shared/chunk/sizes.h"
#include "shared/model/presets.h"
#include "tests/shared/support/small_diffusion.h"

namespace polyphony {
namespace {

using examples::small_diffusion;

constexpr LayerRange kDiffusionBlock{1, 2};

// `count` items of `tokens` latent tokens, each conditioned by `rows` rows.
WorkSize items(std::int32_t count, std::int64_t tokens, std::int64_t rows) {
  return {.tokens = count * tokens,
          .pairs = count * tokens * tokens,
          .sequences = count,
          .condition = count * rows,
          .cross_pairs = count * tokens * rows};
}

}  // namespace

TEST_CASE("the FLOPs of a diffusion block agree with published accounting") {
  // Wan's own count, forward, with q tokens and c text rows of width e: self-attention 8qh² + 4q²h,
  // cross-attention 4qh² + 4ceh + 4qch, MLP 4qhf. We add the modulation of each item, 2R(256 + 6h).
  // Source: NVIDIA-NeMo Megatron-Bridge wan_provider.py.
  const Module& wan = find_preset("wan2.1-1.3b")->module;
  const double q = 32760, c = 512, h = 1536, f = 8960, e = 1536, r = 64;
  const double forward = 8 * q * h * h + 4 * q * q * h + 4 * q * h * h + 4 * c * e * h +
                         4 * q * c * h + 4 * q * h * f + 2 * r * (256 + 6 * h);
  const WorkSize one = items(1, 32760, 512), two = items(2, 32760, 512);
  CHECK(total_flops(expand(wan, kDiffusionBlock, Phase::forward, one, {})).value ==
        doctest::Approx(forward).epsilon(1e-12));
  CHECK(total_flops(expand(wan, kDiffusionBlock, Phase::forward, two, {})).value ==
        doctest::Approx(2 * forward).epsilon(1e-12));
  // Backward twice that, minus 2·256·R, as the gradient of the time features is not needed.
  CHECK(total_flops(expand(wan, kDiffusionBlock, Phase::backward, one, {})).value ==
        doctest::Approx(2 * forward - 2 * 256 * r).epsilon(1e-12));
  // Without the gradient of the conditioning: minus 4ceh.
  CHECK(
      total_flops(expand(wan, kDiffusionBlock, Phase::backward, one, {.edge_grad = false})).value ==
      doctest::Approx(2 * forward - 2 * 256 * r - 4 * c * e * h).epsilon(1e-12));
  // 4 ranks split the 12 heads and everything but the modulation.
  const double alone = 2 * r * (256 + 6 * h);
  CHECK(total_flops(expand(wan, kDiffusionBlock, Phase::forward, one, {.tp = 4})).value ==
        doctest::Approx((forward - alone) / 4 + alone).epsilon(1e-12));
}

TEST_CASE("the backward pass of a frozen first block stops if nothing before it trains") {
  // Latent tokens have no gradient: the first of two blocks only propagates from its end to the
  // conditioning; the second one propagates in full. 10 tokens, 3 conditioning rows:
  //   both      fc2 and fc1 2·2·10·8·12, cross_out 2·10·8·8, attention 8·10·3·8, kv 2·3·5·16
  //   second    query, out, qkv 2·10·8·(8 + 8 + 24), attention 8·100·8
  const double both = 2 * 2 * 10 * 8 * 12 + 2 * 10 * 8 * 8 + 8 * 10 * 3 * 8 + 2 * 3 * 5 * 16;
  const double second = 2 * 10 * 8 * (8 + 8 + 24) + 8 * 100 * 8;
  const Expansion backward =
      expand(small_diffusion(), {0, 3}, Phase::backward, items(1, 10, 3), {.weight_grad = false});
  CHECK(total_flops(backward).value == 2 * both + second);
}

TEST_CASE("collectives of a diffusion block") {
  const std::int64_t tokens = 20 * 8 * 4, rows = 6 * 5 * 4;  // 20 tokens of 8, 6 rows of 5, fp32
  const auto listed = [](std::vector<std::int64_t> bytes) {
    std::vector<InnerCollective> all;
    for (const std::int64_t count : bytes)
      all.push_back({CollectiveKind::all_reduce, Bytes(count), GroupKind::tensor});
    return all;
  };
  const WorkSize size = items(2, 10, 3);
  Module module = small_diffusion();
  module.heads = module.kv_heads = 2;
  module.head_dim = 4;
  // Sums after out, cross_out and fc2; then sums of the input gradients of fc1, query and qkv, and
  // of the conditioning once, after all blocks.
  CHECK((expand(module, kDiffusionBlock, Phase::forward, size, {.tp = 2}).collectives ==
         listed({tokens, tokens, tokens})));
  CHECK((expand(module, kDiffusionBlock, Phase::backward, size, {.tp = 2}).collectives ==
         listed({tokens, tokens, tokens, rows})));
  CHECK((expand(module, {0, 4}, Phase::forward, size, {.tp = 2}).collectives.size() == 6));
  CHECK((expand(module, {0, 4}, Phase::backward, size, {.tp = 2}).collectives.size() == 7));
  // A rank's own rows are 10 of 20 tokens and 3 of 6 conditioning rows. Gathers before each split
  // matrix and again for its weight gradient, reduce-scatters after it.
  const auto gather = CollectiveKind::all_gather, scatter = CollectiveKind::reduce_scatter;
  const auto kinds = [&](Phase phase) {
    std::vector<CollectiveKind> all;
    for (const InnerCollective& one :
         expand(module, kDiffusionBlock, phase, size, {.tp = 2, .sp = true}).collectives)
      all.push_back(one.kind);
    return all;
  };
  CHECK((kinds(Phase::forward) ==
         std::vector{gather, gather, scatter, gather, scatter, gather, scatter}));
  CHECK((kinds(Phase::backward) == std::vector{gather, gather, scatter, gather, gather, scatter,
                                               gather, gather, scatter, scatter}));
  module.condition = 0;
  CHECK((expand(module, kDiffusionBlock, Phase::backward, size, {.tp = 2}).collectives ==
         listed({tokens, tokens})));
}

TEST_CASE("parameters of a diffusion module, counted by hand") {
  // Embedding 2·8 + 8; block: modulation 256·3 + 3 and 3·48 + 48, qkv 24·8 + 24, out 64 + 8, norm
  // 16, query 64 + 8, kv 16·5 + 16, out 64 + 8, MLP 2·96 + 12 + 8; head: 256·3 + 3 and 3·16 + 16,
  // 8·2 + 2.
  const std::int64_t block = 771 + 192 + 216 + 72 + 16 + 72 + 96 + 72 + 212;
  CHECK(parameter_count(small_diffusion()) == 24 + 2 * block + 771 + 64 + 18);
  for (const Parameter& parameter : parameters(small_diffusion()))
    if (parameter.cut == Cut::replicated) CHECK(parameter.partial == Partial::sequence);
}

TEST_CASE("published diffusion models, all parameters counted") {
  // DiT-XL/2 has 675,129,632 (the sum of its models.py). Of these, H² + 256·H + 1001·H are the
  // shared time and class embedding, and 16·H + 16, which we lack, predict variances. Instead, each
  // of our 29 layers has 256·H + H.
  const std::int64_t h = 1152;
  CHECK(parameter_count(find_preset("dit-xl-2")->module) ==
        675'129'632 - (h * h + 256 * h + 2 * h + 1001 * h) - (16 * h + 16) - 256 * h +
            29 * 257 * h);
  // Wan2.1 has 1,418,996,800 and 14,288,491,584. Our count omits the text embedding, and modulation
  // widths agree to 8 % of 1.2 %.
  const auto ratio = [](const char* name, double published, double width) {
    const double text = width * (4096 + width) + 2 * width;
    return static_cast<double>(parameter_count(find_preset(name)->module)) / (published - text);
  };
  CHECK(std::abs(ratio("wan2.1-1.3b", 1'418'996'800, 1536) - 1) < 0.002);
  CHECK(std::abs(ratio("wan2.1-14b", 14'288'491'584, 5120) - 1) < 0.002);
}

TEST_CASE("saved activations of a diffusion chunk") {
  // fp32, 2 items of 10 tokens, each conditioned by 3 rows: T 20, C 6, one head of 8.
  const WorkSize size = items(2, 10, 3);
  // Two LayerNorms with two numbers per row.
  const std::int64_t statistics = 4 * 20 * 2;
  const std::int64_t common = 4 * 20 * (4 * 8 + 4 * 8 + 2 * 12) + 4 * 20 + 2 * statistics;
  const std::int64_t branches = 4 * 20 * 16, modulation = 4 * 2 * (8 * 8 + 2 * 3);
  const std::int64_t across = 4 * 20 * (2 * 8 + 2 * 8) + 4 * 20 + 4 * 6 * 2 * 8 + statistics;
  const std::int64_t conditioning = 4 * 6 * 5;
  const auto kept = [&](LayerRange range, const ChunkContext& context) {
    return tape_bytes(small_diffusion(), range, size, context).value;
  };
  CHECK(kept(kDiffusionBlock, {}) == common + branches + modulation + across + conditioning);
  CHECK(kept({1, 3}, {}) == 2 * (common + branches + modulation + across) + conditioning);
  // Frozen: no inputs of matrices (2 · 8 of the block's, 12 of fc2, a row of the query, and 2 · 3
  // of the modulation; cross-attention still needs the rows that it reads) and no branches before
  // gates.
  Module frozen = small_diffusion();
  frozen.trainable = Trainable::frozen;
  CHECK(tape_bytes(frozen, {2, 3}, size, ChunkContext{}).value ==
        common + modulation + across + conditioning - 4 * 20 * (2 * 8 + 12 + 8) - 4 * 2 * 2 * 3);
  // Nothing before the first block trains: up to its cross-attention it has no autograd graph.
  CHECK(tape_bytes(frozen, {0, 2}, size, ChunkContext{}).value ==
        tape_bytes(frozen, {2, 3}, size, ChunkContext{}).value -
            (4 * 20 * (2 * 8 + 4 * 8) + 4 * 20 + 2 * statistics + 4 * 2 * 8));
  CHECK(kept({0, 1}, {}) == 4 * 20 * 2);
  CHECK(kept({3, 4}, {}) == 4 * 20 * 16 + 4 * 2 * (3 * 8 + 6) + 4 * 20 * 2 + statistics);
  // Recomputed blocks keep their inputs; conditioning rows are kept once.
  const ChunkContext full{.recompute = Recompute::full};
  CHECK(kept({0, 3}, full) == 4 * 20 * 2 + 2 * 4 * 20 * 8 + conditioning);
  CHECK(kept({2, 4}, full) == 4 * 20 * 8 + kept({3, 4}, {}) + conditioning);
  CHECK(workspace_bytes(small_diffusion(), {0, 3}, size, full).value ==
        common + branches + modulation + across - 4 * 20 * 8);
  // Two ranks with 10 rows each, half the features of every matrix, and one of two heads.
  Module two = small_diffusion();
  two.heads = two.kv_heads = 2;
  two.head_dim = 4;
  const std::int64_t halves = 4 * (10 * 4 * 8 + 20 * (2 * 4 + 2 * 4 + 2 * 6)) + 4 * 20 +
                              4 * 10 * 16 + modulation + 4 * (10 * 2 * 8 + 20 * 2 * 4 + 6 * 2 * 4) +
                              4 * 20 + conditioning + 3 * statistics / 2;
  CHECK(tape_bytes(two, kDiffusionBlock, size, ChunkContext{.tp = 2, .sp = true}).value == halves);
}

}  // namespace polyphony
