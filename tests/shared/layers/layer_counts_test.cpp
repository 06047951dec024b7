// Kernels of first and last layers, of experts and of diffusion modules, counted by hand.
#include "tests/shared/support/kernel_counts.h"
#include "tests/shared/support/small_diffusion.h"

namespace polyphony {

using namespace test;

TEST_CASE("two convolutions over audio frames") {
  Module m = small_vision();
  m.kind = ModuleKind::audio;
  m.mel_bins = 5;
  // 8 tokens of 2 frames. First: 16 rows, 3·5 to 8; second: 8 rows, 3·8 to 8. Rows of three frames
  // gathered (2), GELU (2), and positions added at the end (3).
  const WorkSize clip{.tokens = 8, .pairs = 64, .sequences = 1};
  const double first = 16 * 15 * 8, second = 8 * 24 * 8;
  CHECK(counts(m, 0, Phase::forward, clip) == Counts{2 * (first + second),
                                                     16 * 23 + 120 + 8 + 8 * 32 + 192 + 8, 0, 0,
                                                     16 * (30 + 16) + 8 * (48 + 40), 5});
  // GELU 3 each; the input gradient of the second, added (2) to zeros (1).
  CHECK(counts(m, 0, Phase::backward_input, clip) ==
        Counts{2 * second, 8 * 32 + 192, 0, 0, 8 * 24 + 8 * 72 + 16 * 24, 4});
  CHECK(counts(m, 0, Phase::backward_weight, clip) == Counts{2 * (first + second),
                                                             16 * 23 + 2 * 120 + 8 * 32 + 2 * 192,
                                                             0, 0, 16 * 8 + 8 * 8, 4});
}

TEST_CASE("projectors with two matrices and with one") {
  Module m;
  m.name = "projector";
  m.kind = ModuleKind::projector;
  m.merge = 2;
  m.projector_in = 32;
  m.projector_hidden = 12;
  m.projector_out = 8;
  const WorkSize rows{.tokens = 5, .sequences = 1};
  // Neighbors concatenated (2·32), GELU (2·12), the second bias (2·8); the first bias is part of
  // its GEMM.
  CHECK(counts(m, 0, Phase::forward, rows) ==
        Counts{2.0 * 5 * (384 + 96), 5 * (44 + 20) + 480 + 12, 0, 0, 5 * (64 + 24 + 16), 3});
  CHECK(counts(m, 0, Phase::backward_input, rows) ==
        Counts{2.0 * 5 * (384 + 96), 5 * (44 + 20) + 480, 0, 0, 5 * (36 + 64), 2});
  CHECK(counts(m, 0, Phase::backward_weight, rows) ==
        Counts{2.0 * 5 * (384 + 96), 5 * (44 + 20) + 960, 0, 0, 5 * (12 + 8), 4});
  m.projector_hidden = 0;
  CHECK(counts(m, 0, Phase::forward, rows) ==
        Counts{2.0 * 5 * 256, 5 * 40 + 256 + 8, 0, 0, 5 * 64, 1});
  CHECK(counts(m, 0, Phase::backward_input, rows) ==
        Counts{2.0 * 5 * 256, 5 * 40 + 256, 0, 0, 5 * 64, 1});
  CHECK(counts(m, 0, Phase::backward_weight, rows) ==
        Counts{2.0 * 5 * 256, 5 * 40 + 512, 0, 0, 5 * 8, 2});
}

TEST_CASE("the first and last layers of a language module") {
  const Module m = small_language();
  // 7 rows looked up (2·8), concatenated with 3 others and reordered: 10 rows (2·8).
  CHECK(counts(m, 0, Phase::forward, kTen) == Counts{0, 0, 0, 0, 2 * 17 * 8, 3});
  // Gradients of the 3 other rows; gradients of table rows: read, accumulated in place.
  CHECK(counts(m, 0, Phase::backward_input, kTen) == Counts{0, 0, 0, 0, 2 * 3 * 8, 1});
  CHECK(counts(m, 0, Phase::backward_weight, kTen) == Counts{0, 0, 0, 0, 3 * 7 * 8, 2});
  // 3 labeled rows selected (2·8), a norm (2·8), logits 8·32, and 8 passes over 3·32 of them.
  CHECK(counts(m, 3, Phase::forward, kTen) ==
        Counts{2.0 * 3 * 256, 3 * 40 + 256, 0, 0, 3 * 32 + 8 * 96, 1 + 1 + 8});
  // 4 passes over the logits; the norm (3·8) and its weight (2·8), into 10 rows of zeros (10·8 +
  // 3·3·8).
  CHECK(counts(m, 3, Phase::backward_input, kTen) ==
        Counts{2.0 * 3 * 256, 3 * 40 + 256, 0, 0, 4 * 96 + 3 * 40 + (10 + 9) * 8, 4 + 4 + 2});
  CHECK(counts(m, 3, Phase::backward_weight, kTen) ==
        Counts{2.0 * 3 * 256, 3 * 40 + 512, 0, 0, 0, 0});
}

TEST_CASE("gradients and losses of 16-bit formats are in fp32") {
  // bf16: 2 bytes per value, gradients accumulated in fp32 (4 read, 4 written), the loss in fp32.
  const Module m = small_language();
  const ChunkContext bf16{.precision = NumberFormat::bf16};
  const auto bytes = [&](Phase phase, KernelKind kind) {
    std::int64_t sum = 0;
    for (const Kernel& kernel : expand(m, {3, 4}, phase, kTen, bf16).kernels)
      if (kernel.kind == kind) sum += kernel.bytes.value;
    return sum;
  };
  CHECK(bytes(Phase::forward, KernelKind::gemm) == 2 * (3 * 40 + 256));
  CHECK(bytes(Phase::forward, KernelKind::loss) == 4 * 8 * 96);
  CHECK(bytes(Phase::backward_weight, KernelKind::gemm) == 2 * 3 * 40 + 8 * 256);
}

TEST_CASE("a block with experts, pass by pass") {
  Module m = small_language();
  m.ffn = 0;
  m.experts = 4;
  m.experts_per_token = 2;
  m.expert_ffn = 6;
  // In addition to attention: 10 rows and 20 slots. GEMMs: router 8·4 for 10 rows; gate and up
  // 8·12, down 6·8 for 20 slots; the weights of 4 experts.
  const double attention_flops = 2.0 * 10 * 192, slots = 20;
  const std::int64_t attention_moved = 10 * 40 + 192, attention_passed = 10 * (32 + 108 + 48);
  const Counts forward = counts(m, 1, Phase::forward, kTen);
  CHECK(forward.flops == attention_flops + 2.0 * 10 * 32 + 2 * slots * (96 + 48));
  CHECK(forward.moved == attention_moved + 10 * 12 + 32 + 20 * (20 + 14) + 4 * (96 + 48));
  // Sorting 10·4 logits with int64 indices (2 + 2 values of 4 bytes), 6 passes to the weights of
  // slots; 8 passes over int64 slots (16); rows of slots gathered (2·8); SwiGLU 5·6; reordered,
  // weighted, summed (5·8).
  CHECK(forward.passed ==
        attention_passed + 10 * 4 * 4 + 20 * 6 + 20 * 16 + 20 * 16 + 20 * 30 + 20 * 40);
  CHECK(forward.launches == 14 + 5 + 6 + 1 + 2 + 3);
  // Over 2 ranks all slots are reordered in both directions.
  CHECK(counts(m, 1, Phase::forward, kTen, {.ep = 2}).passed - forward.passed == 2 * 20 * 16);
  const Counts back = counts(m, 1, Phase::backward_input, kTen);
  CHECK(back.flops == forward.flops);
  // Gradient per slot, multiplied by the experts' outputs, summed, multiplied by the weight 8·8;
  // SwiGLU 13·6; reordered and summed 3·8; softmax of slots 7, scattered over 10·4; gradients of
  // both paths summed 3·8. Weights of two norms 2·8.
  CHECK(back.passed == 10 * (96 + 108 + 32) + 20 * 64 + 20 * 78 + 20 * 24 + 20 * 7 + 40 + 10 * 24);
  // Gradients of the experts' weights and of the router are accumulated in place.
  const Counts weight = counts(m, 1, Phase::backward_weight, kTen);
  CHECK(weight.flops == forward.flops);
  CHECK(weight.moved == 10 * 40 + 2 * 192 + 10 * 12 + 2 * 32 + 20 * 34 + 2 * 4 * 144);
}

TEST_CASE("a diffusion module, pass by pass") {
  const Module m = examples::small_diffusion();  // H 8, F 12, R 3, conditioning rows of 5
  // One item of 10 tokens and 3 rows.
  const WorkSize one{.tokens = 10, .pairs = 100, .sequences = 1, .condition = 3, .cross_pairs = 30};
  // Embedding: patches of 2, interpolation of noise and latent (3·2), positions written and
  // concatenated (4·8), added (3·8).
  CHECK(counts(m, 0, Phase::forward, one) ==
        Counts{2.0 * 10 * 16, 10 * 10 + 16 + 8, 0, 0, 10 * (6 + 32 + 24), 6});
  // Block: SiLU (2·3); two adaptive norms (2·8 per item, 2·8 per row); norm before cross-attention
  // (2·8); biases of out, cross out and fc2 (2·8 each); gates 3·8 twice, a sum 3·8; GELU 2·12.
  const Counts block = counts(m, 1, Phase::forward, one);
  CHECK(block.passed == 6 + 2 * 16 + 10 * (2 * 16 + 16 + 48 + 72 + 24));
  CHECK(block.attention == 4.0 * (100 + 30) * 8);
  // q, o of 10 rows; k, v of 10, and of 3.
  CHECK(block.kept == 10 * 32 + (2 * 10 + 2 * 3) * 8);
  // Head: modulation's SiLU, adaptive norm, 9 passes over 10·2.
  CHECK(counts(m, 3, Phase::forward, one).passed == 6 + 16 + 10 * 16 + 9 * 20);
  // Backward of the head: 2 passes over 20; norm 3·8 and, for scales and shifts, 2·8 per row; parts
  // concatenated 2·16, SiLU 3·3.
  CHECK(counts(m, 3, Phase::backward_input, one).passed == 40 + 10 * (24 + 16) + 32 + 9);
  // Two items: one norm kernel per item, and their rows concatenated (2·8).
  const WorkSize two{.tokens = 20, .pairs = 200, .sequences = 2, .condition = 6, .cross_pairs = 60};
  CHECK(counts(m, 1, Phase::forward, two).passed == 2 * block.passed + 2 * 20 * 16);
}

}  // namespace polyphony
