// Tensor-parallel GEMMs in chunks of rows (ModuleLayout::tp_pieces): the chunks, their transfers
// and compute, their cost, and layouts that are rejected.
#include "shared/work/row_pieces.h"

#include <doctest/doctest.h>

#include <array>

#include "shared/check/check.h"
#include "shared/chunk/expand.h"
#include "shared/cost/cost_model.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/shared/support/slow_memory.h"

namespace polyphony {
namespace {

using Kind = CollectiveKind;
using Collectives = std::vector<InnerCollective>;

// Llama-3.1-70B's block, 102 rows: H 8192, F 28672.
Expansion block(Phase phase, ChunkContext context) {
  context.precision = NumberFormat::bf16;
  return expand(examples::llama_70b(), {1, 2}, phase,
                {.tokens = 102, .pairs = 5253, .text_tokens = 102, .sequences = 1}, context);
}

Collectives joined(const std::vector<Collectives>& lists) {
  Collectives all;
  for (const Collectives& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// What a link of `rate` between two ranks makes of the forward of 1,000 rows of a block, in
// microseconds.
double link_cost_in_pieces(int pieces, bool sp, double rate, double taken = 0) {
  Module module;
  module.kind = ModuleKind::language;
  module.layers = 1;
  module.hidden = 128;
  module.heads = module.kv_heads = 4;
  module.head_dim = 32;
  module.ffn = 256;
  module.vocab = 64;
  HardwareProfile profile = test::slow_memory();
  profile.stack.taken_inside = taken;
  const ChunkContext context{.tp = 2, .sp = sp, .tp_pieces = pieces};
  const WorkSize size{.tokens = 1000, .pairs = 500'500, .sequences = 1};
  const auto time = [&](double each) {
    const Ring ring{2, 1, BytesPerSecond(each), BytesPerSecond(each), Seconds(0)};
    return range_time(module, {1, 2}, Phase::forward, size, context, {ring, {}, {}}, profile);
  };
  return (time(rate) - time(1e18)).count() * 1e6;
}

Scenario scenario_with(const std::string& grid) {
  return read_scenario(
      R"({"polyphony": 1, "about": "Sizes chosen for speed. Source: none.",
          "model": {"language": {"layers": 2, "hidden": 64, "heads": 4, "ffn": 128, "vocab": 64}},
          "cluster": {"node": {"device": "H100", "ranks": 4, "link": "25GBps"}},
          "data": {"source": "synthetic", "text": {"tokens": 64}, "global_batch": 4},
          "layout": {"placement": "homogeneous", "all": {)" +
          grid + R"(}}})",
      "pieces.json", test::file_text);
}

std::string refusal_of(const std::string& grid) {
  const Scenario scenario = scenario_with(grid);
  const auto why = check_layout(scenario, *scenario.layout);
  return why ? why->reason : "";
}

}  // namespace

TEST_SUITE("rows in pieces") {
  TEST_CASE("chunks are equal parts of every share, and the last ones are empty with few rows") {
    // 10 rows on 4 ranks: shares of 3, 3, 3, 1; in two pieces of 2 and 1 of each.
    constexpr RowPieces shared{{10, 4}, 2};
    CHECK(shared.count() == 2);
    CHECK(std::array{shared.begin(0), shared.each(0), shared.padded(0), shared.rest(0)} ==
          std::array<std::int64_t, 4>{0, 2, 8, 1});
    CHECK(std::array{shared.begin(1), shared.each(1), shared.padded(1), shared.rest(1)} ==
          std::array<std::int64_t, 4>{2, 1, 4, 0});
    CHECK(shared.full(0) == 3);
    CHECK(shared.full(1) == 3);
    // 5 rows in 4: 2, 2, 1 and none.
    constexpr RowPieces whole{{5, 1}, 4};
    CHECK(whole.count() == 4);
    CHECK(whole.each(2) == 1);
    CHECK(whole.each(3) == 0);
    CHECK(RowPieces{{0, 4}, 3}.padded(0) == 0);
  }

  TEST_CASE("every chunk has its own all-reduce, or gather and scatter") {
    // 102 rows in thirds of 34.
    const InnerCollective sum{Kind::all_reduce, Bytes(34 * 8192 * 2)};
    const ChunkContext context{.tp = 4, .tp_pieces = 3};
    CHECK(block(Phase::forward, context).collectives == Collectives(6, sum));
    CHECK(block(Phase::backward, context).collectives == Collectives(6, sum));
    // Shares of 26 in pieces of 9, 9 and 8, of four ranks.
    const ChunkContext shared{.tp = 4, .sp = true, .tp_pieces = 3};
    const auto thirds = [](Kind kind) {
      return Collectives{
          {kind, Bytes(36 * 8192 * 2)}, {kind, Bytes(36 * 8192 * 2)}, {kind, Bytes(32 * 8192 * 2)}};
    };
    const Collectives gathers = thirds(Kind::all_gather), scatters = thirds(Kind::reduce_scatter);
    CHECK(block(Phase::forward, shared).collectives ==
          joined({gathers, scatters, gathers, scatters}));
    // Of a column-parallel product's weight gradient x comes whole, 104 rows.
    const Collectives x{{Kind::all_gather, Bytes(104 * 8192 * 2)}};
    CHECK(block(Phase::backward, shared).collectives ==
          joined({gathers, x, scatters, gathers, x, scatters}));
  }

  TEST_CASE("GEMMs are split into smaller ones with the same FLOPs in total") {
    for (const bool sp : {false, true}) {
      for (const Phase phase : {Phase::forward, Phase::backward}) {
        const Expansion whole = block(phase, {.tp = 4, .sp = sp}),
                        pieces = block(phase, {.tp = 4, .sp = sp, .tp_pieces = 3});
        CHECK(total_flops(pieces).value == doctest::Approx(total_flops(whole).value));
        const auto products = [](const Expansion& of) {
          return std::count_if(of.kernels.begin(), of.kernels.end(), [](const Kernel& kernel) {
            return kernel.kind == KernelKind::gemm;
          });
        };
        // Of 4 matrices: forward all have a gather or a sum under sequence parallelism, half of
        // them otherwise; so have input gradients, and there are 4 weight gradients. Of shares of
        // 26, 26, 26 and 24 the last rank's has 6 of the last piece's 8, which are a product of
        // their own.
        CHECK(products(whole) == (phase == Phase::forward ? 4 : 8));
        CHECK(products(pieces) == products(whole) + (sp ? 4 * 3 : 2 * 2));
      }
    }
  }

  TEST_CASE("low-rank matrices with GEMMs in chunks have the same FLOPs") {
    Module module = examples::llama_70b();
    module.trainable = Trainable::lora;
    module.lora_rank = 8;
    const WorkSize size{.tokens = 102, .pairs = 5253, .sequences = 1};
    for (const bool sp : {false, true})
      for (const Phase phase : {Phase::forward, Phase::backward}) {
        const auto flops = [&](int pieces) {
          return total_flops(
                     expand(module, {1, 2}, phase, size, {.tp = 4, .sp = sp, .tp_pieces = pieces}))
              .value;
        };
        CHECK(flops(3) == doctest::Approx(flops(1)));
      }
  }

  // In quarters of 250 rows the output product, in 64 and out 128, moves (250·64 + 64·128 +
  // 250·128)·4 = 224,768 bytes, the feed-forward's second, in 128, 321,536: with a launch 225.768
  // and 322.536 us. Each quarter's sum of 250·128·4 = 128,000 bytes takes 128 us at 1 GB/s, 640 us
  // at 0.2.
  TEST_CASE("all-reduces overlap with the GEMM of the next chunk, except for the last") {
    CHECK(link_cost_in_pieces(1, false, 1e9) == doctest::Approx(2 * 512.0));
    CHECK(link_cost_in_pieces(4, false, 1e9) == doctest::Approx(2 * 128.0));
    CHECK(link_cost_in_pieces(4, false, 2e8) ==
          doctest::Approx(2 * 640 + 3 * (640 - 225.768) + 3 * (640 - 322.536)));
    // P/k + (k − 1)/k · max(P, C) + C/k, less P.
    const auto closed = [](double product, double sum, int k) {
      return product / k + (k - 1.0) / k * std::max(product, sum) + sum / k - product;
    };
    CHECK(link_cost_in_pieces(4, false, 2e8) ==
          doctest::Approx(closed(4 * 225.768, 4 * 640, 4) + closed(4 * 322.536, 4 * 640, 4)));
    // While it runs a sum takes half of the device: what it delays is made up for.
    CHECK(link_cost_in_pieces(4, false, 1e9, 0.5) == doctest::Approx(2 * (128 + 3 * 64.0)));
  }

  // Gathers and scatters of 250 rows move half as much as sums: 64 us each, of which the first
  // gather and the last scatter show.
  TEST_CASE("gathers overlap with the GEMM of the previous chunk, except for the first") {
    CHECK(link_cost_in_pieces(1, true, 1e9) == doctest::Approx(4 * 256.0));
    CHECK(link_cost_in_pieces(4, true, 1e9) == doctest::Approx(4 * 64.0));
  }

  TEST_CASE("tp_pieces needs tensor parallelism, and is resolved and read again") {
    CHECK(refusal_of(R"("tp": 4, "tp_pieces": 3)").empty());
    CHECK(refusal_of(R"("tp_pieces": 2)") ==
          "language: tp_pieces 2 splits the GEMMs of tensor-parallel ranks, but tp is 1; leave it "
          "out");
    const Scenario scenario = scenario_with(R"("tp": 2, "sp": true, "tp_pieces": 4)");
    const std::string text = resolved_text(scenario);
    CHECK(text.find(R"("tp_pieces": 4)") != std::string::npos);
    CHECK(read_scenario(text, "again.json", test::file_text).layout == scenario.layout);
    CHECK(describe(scenario.layout->modules[0]) == "TP2 SP in 4 chunks PP1 DP2");
    CHECK(brief(scenario.model, *scenario.layout).find("TP2s/4") != std::string::npos);
  }
}

}  // namespace polyphony
