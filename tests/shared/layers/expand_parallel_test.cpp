// Effects of sequence parallelism, shared key/value heads and recomputation on kernels, collectives
// and saved activations.
#include <doctest/doctest.h>

#include <algorithm>

#include "shared/chunk/expand.h"
#include "shared/chunk/sizes.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

using examples::llama_70b;  // H 8192, 64 query heads and 8 key/value heads of 128, F 28672
using examples::projector_12b_70b;
using Kind = CollectiveKind;

constexpr LayerRange kBlock{1, 2};
constexpr LayerRange kHead{81, 82};

WorkSize text(std::int64_t tokens) {
  return {.tokens = tokens,
          .pairs = tokens * (tokens + 1) / 2,
          .text_tokens = tokens,
          .loss_tokens = tokens,
          .sequences = 1};
}
std::vector<InnerCollective> collectives(LayerRange layers, Phase phase, std::int64_t tokens,
                                         const ChunkContext& context) {
  return expand(llama_70b(), layers, phase, text(tokens), context).collectives;
}
double flops(Phase phase, const ChunkContext& context) {
  return total_flops(expand(llama_70b(), kBlock, phase, text(64), context)).value;
}

}  // namespace

TEST_CASE("sequence parallelism gathers and reduce-scatters what tensor parallelism sums") {
  const ChunkContext context{.tp = 4, .sp = true, .precision = NumberFormat::bf16};
  // 102 rows on 4 ranks have parts of 26, so 104 rows move.
  const Bytes moved(104 * 8192 * 2);
  const InnerCollective gather{Kind::all_gather, moved}, scatter{Kind::reduce_scatter, moved};
  CHECK(collectives(kBlock, Phase::forward, 102, context) ==
        std::vector<InnerCollective>{gather, scatter, gather, scatter});
  // dy of a row-parallel GEMM; x of a column-parallel one again, then its dx.
  const std::vector<InnerCollective> backward{gather, gather, scatter, gather, gather, scatter};
  CHECK(collectives(kBlock, Phase::backward, 102, context) == backward);
  CHECK(collectives(kBlock, Phase::backward_input, 102, context) == backward);
  CHECK(collectives(kBlock, Phase::backward_weight, 102, context).empty());
  ChunkContext frozen = context;
  frozen.weight_grad = false;
  CHECK(collectives(kBlock, Phase::backward, 102, frozen) ==
        std::vector<InnerCollective>{gather, scatter, gather, scatter});
  // The embedding has one sum over all rows; the loss uses its 102 rows without padding.
  CHECK(collectives({0, 1}, Phase::forward, 102, context) == std::vector<InnerCollective>{scatter});
  CHECK(collectives({0, 1}, Phase::backward, 102, context) == std::vector<InnerCollective>{gather});
  const Bytes labelled(102 * 8192 * 2), row(102 * 4);
  CHECK(collectives(kHead, Phase::forward, 102, context) ==
        std::vector<InnerCollective>{{Kind::all_gather, labelled},
                                     {Kind::all_reduce_max, row},
                                     {Kind::all_reduce, row},
                                     {Kind::all_reduce, row}});
  CHECK(
      collectives(kHead, Phase::backward, 102, context) ==
      std::vector<InnerCollective>{{Kind::all_gather, labelled}, {Kind::reduce_scatter, labelled}});
  // A projector gathers patches: 10 merged rows are 40 of width 5120, which 4 ranks divide.
  const Module projector = projector_12b_70b();
  const auto merged = std::int64_t{projector.merge} * projector.merge;
  const Bytes patches(10 * projector.projector_in * 2), rows(12 * 8192 * 2);
  REQUIRE(10 * merged % 4 == 0);
  const WorkSize ten{.tokens = 10, .sequences = 1};
  CHECK(expand(projector, {0, 1}, Phase::forward, ten, context).collectives ==
        std::vector<InnerCollective>{{Kind::all_gather, patches}, {Kind::reduce_scatter, rows}});
  CHECK(expand(projector, {0, 1}, Phase::backward, ten, context).collectives ==
        std::vector<InnerCollective>{{Kind::all_gather, rows},
                                     {Kind::all_gather, patches},
                                     {Kind::reduce_scatter, patches}});
}

TEST_CASE("more ranks than key/value heads, and a vocabulary that they do not divide") {
  Module module = llama_70b();
  module.vocab = 128'250;
  // 16 ranks have 4 query heads and one key/value head each; 128250 = 16 · 8015 + 10 tokens.
  const ChunkContext context{.tp = 16, .precision = NumberFormat::bf16};
  const auto widest = [&](LayerRange layers) {
    const Expansion expansion = expand(module, layers, Phase::forward, text(10), context);
    return *std::find_if(expansion.kernels.begin(), expansion.kernels.end(),
                         [](const Kernel& k) { return k.kind == KernelKind::gemm; });
  };
  CHECK(widest(kBlock).n == (4 + 2) * 128);
  CHECK(widest(kHead).n == 8016);
}

TEST_CASE("recomputation is part of the backward op") {
  const ChunkContext none{}, full{.recompute = Recompute::full},
      selective{.recompute = Recompute::selective};
  const double attention = 4.0 * 64 * 65 / 2 * 8192;
  CHECK(flops(Phase::forward, full) == flops(Phase::forward, none));
  CHECK(flops(Phase::backward, full) ==
        doctest::Approx(flops(Phase::backward, none) + flops(Phase::forward, none)));
  CHECK(flops(Phase::backward, selective) ==
        doctest::Approx(flops(Phase::backward, none) + attention));
  CHECK(flops(Phase::backward_weight, full) == flops(Phase::backward_weight, none));
  CHECK(flops(Phase::backward_input, full) ==
        doctest::Approx(flops(Phase::backward_input, none) + flops(Phase::forward, none)));

  ChunkContext cut{.tp = 2};
  const auto sums = [&](LayerRange layers) {
    return collectives(layers, Phase::backward, 10, cut).size();
  };
  CHECK(sums({1, 4}) == 6);
  cut.recompute = Recompute::selective;  // no collective inside attention
  CHECK(sums({1, 4}) == 6);
  cut.recompute = Recompute::full;
  CHECK(sums({1, 4}) == 12);
  cut.recomputed = {2, 3};  // block 1 only
  CHECK(sums({1, 4}) == 8);
  CHECK(sums({0, 1}) + sums({81, 82}) == 1);  // neither embedding nor head

  // The keys of a ring circulate again after the gather of the attention's output gradient: 204
  // tokens with 2 · 4 heads of 128, bf16; then they circulate with their fp32 gradients.
  const ChunkContext ring{.tp = 2,
                          .sp = true,
                          .cp = 2,
                          .cp_attention = ContextAttention::ring,
                          .recompute = Recompute::selective,
                          .precision = NumberFormat::bf16};
  WorkSize half = text(102);
  half.gathered = 204;
  const InnerCollective gather{Kind::all_gather, Bytes(102 * 8192 * 2)},
      scatter{Kind::reduce_scatter, Bytes(102 * 8192 * 2)},
      keys{Kind::all_gather, Bytes(204 * 2 * 4 * 128 * 2), GroupKind::context},
      gradients{Kind::all_gather, Bytes(204 * 2 * 4 * 128 * 4), GroupKind::context};
  CHECK(expand(llama_70b(), kBlock, Phase::backward, half, ring).collectives ==
        std::vector<InnerCollective>{gather, gather, scatter, gather, keys, keys, gradients, gather,
                                     scatter});

  ModuleLayout layout;
  layout.recompute = Recompute::full;
  CHECK(recomputed_layers(layout) == kAllLayers);
  layout.recompute_blocks = {1, 2};
  CHECK(recomputed_layers(layout) == LayerRange{2, 3});
}

TEST_CASE("saved activations of recomputed, shared and gathered blocks") {
  // bf16, 100 tokens. Per row: inputs of norms and matrices 4·8192; q and the attention output 8192
  // each, k and v 1024 each, three times 28672; in fp32 the log-sum-exp of 64 heads, and a scale
  // for each of two norms.
  const std::int64_t input = 100 * 8192 * 2, core = 100 * (8192 * 2 + 64 * 4);
  const std::int64_t heads = 100 * (8192 + 2 * 1024) * 2, ffn = 100 * 3 * 28672 * 2;
  const std::int64_t scales = 100 * 2 * 4, block = 4 * input + heads + core + ffn + scales;
  const auto tape = [](LayerRange layers, const ChunkContext& context, std::int64_t gathered = 0) {
    WorkSize size = text(100);
    size.gathered = gathered;
    return tape_bytes(llama_70b(), layers, size, context).value;
  };
  const auto workspace = [](const ChunkContext& context, std::int64_t gathered = 0) {
    WorkSize size = text(100);
    size.gathered = gathered;
    return workspace_bytes(llama_70b(), {0, 9}, size, context).value;
  };
  ChunkContext context{.precision = NumberFormat::bf16};
  CHECK(tape({1, 3}, context) == 2 * block);
  CHECK(workspace(context) == 0);
  context.recompute = Recompute::selective;
  CHECK(tape({1, 3}, context) == 2 * (block - core));
  CHECK(workspace(context) == core);
  context.recompute = Recompute::full;
  CHECK(tape({1, 3}, context) == 2 * input);
  CHECK(workspace(context) == block - input);
  context.recomputed = {2, 3};
  CHECK(tape({1, 3}, context) == block + input);
  context.recomputed = {20, 30};
  CHECK(workspace(context) == 0);

  // 4 ranks with 25 rows between blocks each.
  const ChunkContext rows{.tp = 4, .sp = true, .precision = NumberFormat::bf16};
  CHECK(tape(kBlock, rows) == input + (heads + core + ffn + scales) / 4);
  // 16 ranks with one key/value head each.
  const ChunkContext shared{.tp = 16, .precision = NumberFormat::bf16};
  CHECK(tape(kBlock, shared) ==
        4 * input + 100 * (8192 / 16 + 2 * 128) * 2 + core / 16 + ffn / 16 + scales);
  // Keys and values of 300 tokens.
  ChunkContext dealt{.cp = 3, .precision = NumberFormat::bf16};
  CHECK(tape(kBlock, dealt, 300) == block + 200 * 2 * 1024 * 2);
  dealt.recompute = Recompute::selective;
  CHECK(workspace(dealt, 300) == core);
  // 2 of the 8 key/value heads at a time: only own rows are saved. During the backward pass k and v
  // of 2 heads of 128 for 300 tokens are in memory, and those of the next 2 heads.
  dealt.cp_heads = 2;
  const std::int64_t brought = 300 * 2 * (2 * 2 * 128) * 2;
  CHECK(workspace(dealt, 300) == core + brought);
  dealt.recompute = Recompute::full;
  CHECK(tape(kBlock, dealt, 300) == input);
  CHECK(workspace(dealt, 300) == block - input + brought);
  dealt.recompute = Recompute::none;
  CHECK(tape(kBlock, dealt, 300) == block);
  CHECK(workspace(dealt, 300) == brought);
}

}  // namespace polyphony
