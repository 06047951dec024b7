// FLOPs to which published rates refer, by hand and compared with numbers printed in the papers.
#include "sim/published/measure.h"

#include <doctest/doctest.h>

namespace polyphony::sim {
namespace {

Module plain(int layers, int hidden, int heads, int vocab) {
  Module m;
  m.name = "language";
  m.layers = layers;
  m.hidden = hidden;
  m.heads = m.kv_heads = heads;
  m.head_dim = hidden / heads;
  m.ffn = 4 * hidden;
  m.vocab = vocab;
  return m;
}

PublishedRow row_of(int batch, int seq, const std::string& recompute) {
  PublishedRow row;
  row.global_batch = batch;
  row.seq = seq;
  row.recompute = recompute;
  return row;
}

double flops(const Module& m, int batch, int seq, const std::string& recompute, bool hardware) {
  return published_flops(row_of(batch, seq, recompute), m, hardware).value;
}

}  // namespace

TEST_CASE(
    "FLOPs of GPT layers: matrix multiplications, full squares of attention, the output layer") {
  // 2 samples of 16 tokens, 3 layers of 8, 96 words. A token: 3·12·8² = 2304 weights in blocks, 768
  // in the head; attention 4·16·8 a layer.
  const Module m = plain(3, 8, 2, 96);
  const double blocks = 2 * 2304 + 3 * 4 * 16 * 8, head = 2 * 768;
  CHECK(flops(m, 2, 16, "none", false) == doctest::Approx(32 * 3 * (blocks + head)));
  CHECK(flops(m, 2, 16, "none", true) == doctest::Approx(32 * 3 * (blocks + head)));
  CHECK(flops(m, 2, 16, "full", false) == doctest::Approx(32 * 3 * (blocks + head)));
  // Full recomputation: the blocks' forward again.
  CHECK(flops(m, 2, 16, "full", true) == doctest::Approx(32 * (4 * blocks + 3 * head)));
}

TEST_CASE("published ratios of hardware FLOPs to model FLOPs") {
  // Korthikanti et al., arXiv 2205.05198, table 5, selective recomputation: HFU ÷ MFU, printed to a
  // tenth of a per cent each. 2048 tokens, 51,200 words.
  struct Row {
    int layers, hidden, heads;
    double mfu, hfu;
  };
  for (const Row& row : {Row{48, 6144, 64, 41.5, 43.7}, Row{96, 12288, 96, 51.4, 52.8},
                         Row{105, 20480, 128, 56.0, 57.0}, Row{128, 25600, 160, 56.3, 57.0}}) {
    const Module m = plain(row.layers, row.hidden, row.heads, 51'200);
    const double ratio =
        flops(m, 4, 2048, "selective(attn)", true) / flops(m, 4, 2048, "selective(attn)", false);
    CHECK(ratio > (row.hfu - 0.05) / (row.mfu + 0.05));
    CHECK(ratio < (row.hfu + 0.05) / (row.mfu - 0.05));
  }
}

TEST_CASE("FLOPs of gated layers and experts: weights used, half of the square") {
  Module m = plain(3, 8, 2, 96);
  m.gated = true;
  m.kv_heads = 1;
  m.ffn = 16;
  // A token, per layer: q and out 2·64, k and v 2·32, three matrices of 128: 576; half of 4·16·8.
  const double head = 2 * 768;
  double blocks = 3 * (2 * 576 + 2 * 16 * 8);
  CHECK(flops(m, 2, 16, "none", false) == doctest::Approx(32 * 3 * (blocks + head)));
  CHECK(flops(m, 2, 16, "full", true) == doctest::Approx(32 * (4 * blocks + 3 * head)));
  // 2 of 4 experts of width 6 and a shared one of 10: 3·8·(2·6 + 10), router 8·4.
  m.ffn = 0;
  m.experts = 4;
  m.experts_per_token = 2;
  m.expert_ffn = 6;
  m.shared_ffn = 10;
  blocks = 3 * (2 * (192 + 528 + 32) + 2 * 16 * 8);
  CHECK(flops(m, 2, 16, "none", false) == doctest::Approx(32 * 3 * (blocks + head)));
  // The first of three blocks dense, three matrices of 8·16 in place of experts and router.
  Module first = m;
  first.ffn = 16;
  first.dense_blocks = 1;
  CHECK(flops(first, 2, 16, "none", false) ==
        doctest::Approx(32 * 3 * (blocks - 2 * (528 + 32 - 384) + head)));
  // Latent attention of rank 4 with 2 rotary values a head: from h to 4 + 2, from 4 to k and v of
  // 8, q 8·(8 + 4), out 64; keys are 12 wide, values 8.
  m.key_value_rank = 4;
  m.rotary_dim = 2;
  blocks = 3 * (2 * (8 * 6 + 4 * 16 + 96 + 64 + 528 + 32) + 16 * (12 + 8));
  CHECK(flops(m, 2, 16, "none", false) == doctest::Approx(32 * 3 * (blocks + head)));
}

TEST_CASE("conversions between step time and metric are inverse") {
  const Module m = plain(3, 8, 2, 96);
  PublishedRow row = row_of(2, 16, "full");
  row.gpus = 4;
  const double model = 32 * 3 * (2 * 2304 + 1536 + 1536.0);
  struct Case {
    Metric metric;
    const char* unit;
    double value;  // of a step of 2 s
  };
  for (const Case& one :
       {Case{Metric::iteration_time, "s", 2}, Case{Metric::iteration_time, "ms", 2000},
        Case{Metric::tokens_per_sec_per_gpu, "", 32 / 2.0 / 4},
        Case{Metric::model_tflops_per_gpu, "", model / 4 / 2 / 1e12},
        Case{Metric::mfu, "", model / 4 / 2 / 312e12 * 100},
        Case{Metric::hfu, "", 32 * (4 * 6144 + 3 * 1536.0) / 4 / 2 / 312e12 * 100},
        Case{Metric::hardware_tflops_per_gpu, "", 32 * (4 * 6144 + 3 * 1536.0) / 4 / 2 / 1e12}}) {
    CAPTURE(name(one.metric));
    row.metric = one.metric;
    row.unit = one.unit;
    CHECK(value_of(row, m, Seconds(2)) == doctest::Approx(one.value).epsilon(1e-12));
    CHECK(step_of(row, m, one.value).count() == doctest::Approx(2).epsilon(1e-12));
  }
}

}  // namespace polyphony::sim
