// Kernels of blocks and of an image encoder's first and last layers, counted by hand: FLOPs and
// values of GEMMs and attention, and values that memory-bound kernels read and write, with their
// launches.
#include "tests/shared/support/kernel_counts.h"
#include "shared/chunk/parameters.h"
#include "shared/chunk/sizes.h"

namespace polyphony {

using namespace test;

TEST_CASE("a decoder block, kernel by kernel") {
  const Module m = small_language();
  // Weights: qkv 8·16, out 8·8, gate and up 8·32, down 16·8: 576. A GEMM reads rows and weights and
  // writes rows: 10·(8+16 + 8+8 + 8+32 + 16+8) + 576.
  // Attention: 4·31·8; reads q (8), k, v (4 each), writes 8, of 10 rows.
  // Passes, by row: norms 2·8 twice, rotation of q and k 9·12, SwiGLU 5·16, residual sums 3·8
  // twice; launches 1 + 1, 10, 2, 1 + 1.
  CHECK(counts(m, 1, Phase::forward, kTen) ==
        Counts{2.0 * 10 * 576, 1040 + 576, 4.0 * 31 * 8, 240, 10 * (32 + 108 + 80 + 48), 16});
  CHECK(counts(m, 1, Phase::recompute, kTen) == counts(m, 1, Phase::forward, kTen));
  // Input gradients: the same GEMMs. Attention: reads q, o, do (8 each), k, v, writes dq, dk,
  // dv: 4·8 + 4·4. Passes: SwiGLU 13·16 (4 launches), norms 3·8 and sums 3·8 twice, rotation 9·12.
  // Weights of RMSNorms: dy∘x, its sum, accumulation: each norm reads x and dy, 3 launches.
  CHECK(counts(m, 1, Phase::backward_input, kTen) ==
        Counts{2.0 * 10 * 576, 1040 + 576, 8.0 * 31 * 8, 480, 10 * (208 + 96 + 108 + 32), 24});
  // Weight gradients read x and dy and add to the gradient in place: twice the weights.
  CHECK(counts(m, 1, Phase::backward_weight, kTen) ==
        Counts{2.0 * 10 * 576, 1040 + 2 * 576, 0, 0, 0, 0});
  // Frozen: no weight gradients of norms.
  CHECK(counts(m, 1, Phase::backward_input, kTen, {.weight_grad = false}) ==
        Counts{2.0 * 10 * 576, 1040 + 576, 8.0 * 31 * 8, 480, 10 * (208 + 96 + 108), 18});
  // Selective recomputation: the rotation and attention again.
  CHECK(counts(m, 1, Phase::backward_input, kTen, {.recompute = Recompute::selective}) ==
        Counts{2.0 * 10 * 576, 1040 + 576, 12.0 * 31 * 8, 720, 10 * (208 + 96 + 2 * 108 + 32), 34});
  // Full recomputation: the forward pass before the backward pass.
  CHECK(counts(m, 1, Phase::backward_input, kTen, {.recompute = Recompute::full}) ==
        Counts{4.0 * 10 * 576, 2 * (1040 + 576), 12.0 * 31 * 8, 720,
               10 * (208 + 96 + 108 + 32 + 32 + 108 + 80 + 48), 40});
}

TEST_CASE("a decoder block without rotary embeddings, and one with head norms") {
  Module m = small_language();
  m.rope_theta = 0;
  CHECK(counts(m, 1, Phase::forward, kTen).passed == 10 * (32 + 80 + 48));
  m = small_language();
  const Counts plain = counts(m, 1, Phase::forward, kTen),
               plain_back = counts(m, 1, Phase::backward_input, kTen);
  m.qk_norm = true;
  // q, k and v copied (2·16); for q and k (12) mean of squares 1, scaling 2, weight 2, copy 2.
  CHECK(counts(m, 1, Phase::forward, kTen).passed - plain.passed == 10 * (2 * 16 + 7 * 12));
  CHECK(counts(m, 1, Phase::forward, kTen).launches - plain.launches == 5);
  // dy∘w 2, projection on x 4, scaling 2, subtraction 3, copy 2; all copied. Weight gradients: dy∘x
  // 3, scaling 2, sum 1.
  CHECK(counts(m, 1, Phase::backward_input, kTen).passed - plain_back.passed ==
        10 * (13 * 12 + 2 * 16 + 6 * 12));
  CHECK(counts(m, 1, Phase::backward_weight, kTen).passed == 0);
}

TEST_CASE("LoRA pairs of the GEMMs of a block") {
  Module m = small_language();
  const Counts plain = counts(m, 1, Phase::forward, kTen);
  m.trainable = Trainable::lora;
  m.lora_rank = 2;
  // h = A x, scaled (2·2 values per row), y += B h: 2·10·2·(in + out) for each of the four GEMMs,
  // whose in + out add up to 104; values x, A, h; h, B, y read and written.
  const Counts lora = counts(m, 1, Phase::forward, kTen);
  CHECK(lora.flops - plain.flops == 2.0 * 10 * 2 * 104);
  CHECK(lora.moved - plain.moved ==
        10 * 40 + 2 * 40 + 4 * 10 * 2 + 4 * 10 * 2 + 2 * 64 + 2 * 10 * 64);
  CHECK(lora.passed - plain.passed == 4 * 10 * 2 * 2);
  CHECK(lora.launches - plain.launches == 4);
  // Backward: g = Bᵀ dy, dx += Aᵀ g; only the pairs have weight gradients: dA = g xᵀ, dB = dy hᵀ.
  const Counts back = counts(m, 1, Phase::backward_input, kTen);
  CHECK(back.flops == 2.0 * 10 * (576 + 2 * 104));
  CHECK(counts(m, 1, Phase::backward_weight, kTen) ==
        Counts{2.0 * 10 * 2 * 104, 10 * (8 * 2 + 104) + 2 * 2 * 104, 0, 0, 0, 0});
}

TEST_CASE("an encoder block: biases, GELU, LayerNorm") {
  const Module m = small_vision();
  // Weights 8·24 + 64 + 8·12 + 12·8 = 448; rows 8·(8+24 + 8+8 + 8+12 + 12+8) = 704. Biases of
  // column-parallel GEMMs are added by them (24 + 12 values), those of row-parallel ones by a pass
  // of 2·8 per row.
  // Passes: norms 2·8 twice, GELU 2·12, sums 3·8 twice, the two biases.
  CHECK(counts(m, 1, Phase::forward, kImages) ==
        Counts{2.0 * 8 * 448, 704 + 448 + 36, 4.0 * 32 * 8, 8 * 4 * 8, 8 * (32 + 24 + 48 + 32), 7});
  // GELU 3·12, norms and sums 3·8 twice each; weights of norms 2·8, 4 launches with a bias.
  CHECK(counts(m, 1, Phase::backward_input, kImages) ==
        Counts{2.0 * 8 * 448, 704 + 448, 8.0 * 32 * 8, 8 * 8 * 8, 8 * (36 + 96 + 32), 13});
  // Bias gradients: column sums (one pass) and an accumulation.
  CHECK(counts(m, 1, Phase::backward_weight, kImages) ==
        Counts{2.0 * 8 * 448, 704 + 2 * 448, 0, 0, 8 * (24 + 8 + 12 + 8), 8});
}

TEST_CASE("layer scales: passes, parameters and saved activations of an encoder block") {
  Module m = small_vision();
  const std::int64_t plain = parameter_count(m),
                     kept = tape_bytes(m, {1, 2}, kImages, ChunkContext{}).value;
  m.layer_scale = 0.1;
  CHECK(parameter_count(m) == plain + m.layers * 2 * 8);
  // The outputs of both parts, 8 rows of 8 fp32 numbers each.
  CHECK(tape_bytes(m, {1, 2}, kImages, ChunkContext{}).value == kept + 2 * 8 * 8 * 4);
  // As above, and per part: scaled, 2·8 per row; gradient scaled 2·8, times the output 3·8, summed
  // 8; an accumulation.
  CHECK(counts(m, 1, Phase::forward, kImages) == Counts{2.0 * 8 * 448, 704 + 448 + 36, 4.0 * 32 * 8,
                                                        8 * 4 * 8, 8 * (32 + 24 + 48 + 32 + 2 * 16),
                                                        7 + 2});
  CHECK(counts(m, 1, Phase::backward_input, kImages) ==
        Counts{2.0 * 8 * 448, 704 + 448, 8.0 * 32 * 8, 8 * 8 * 8, 8 * (36 + 96 + 32 + 2 * 48),
               13 + 2 * 3});
  CHECK(counts(m, 1, Phase::backward_weight, kImages) ==
        Counts{2.0 * 8 * 448, 704 + 2 * 448, 0, 0, 8 * (24 + 8 + 12 + 8), 8 + 2});
}

TEST_CASE("the first and last layers of an image encoder") {
  Module m = small_vision();
  // Patches: 12 features to 8, the bias added by the GEMM; positions added, 3·8 per row.
  CHECK(counts(m, 0, Phase::forward, kImages) ==
        Counts{2.0 * 8 * 12 * 8, 8 * 12 + 96 + 64 + 8, 0, 0, 8 * 24, 1});
  CHECK(counts(m, 0, Phase::backward_input, kImages) == Counts{});
  CHECK(counts(m, 0, Phase::backward_weight, kImages) ==
        Counts{2.0 * 8 * 12 * 8, 8 * 12 + 64 + 2 * 96, 0, 0, 8 * 8 + 8 * 24, 3});
  CHECK(counts(m, 2, Phase::forward, kImages) == Counts{0, 0, 0, 0, 8 * 16, 1});
  CHECK(counts(m, 2, Phase::backward_input, kImages) == Counts{0, 0, 0, 0, 8 * (24 + 16), 5});
  CHECK(counts(m, 2, Phase::backward_weight, kImages) == Counts{});
  // With class tokens: 2 more rows, to which the others are copied (2·8 for 10 rows), positions of
  // 10 rows; after the last norm 8 rows are copied out; backward: zeros, then the rows.
  m.class_token = true;
  CHECK(counts(m, 0, Phase::forward, kImages).passed == 10 * 16 + 10 * 24);
  CHECK(counts(m, 2, Phase::forward, kImages).passed == 8 * 16 + 8 * 16);
  CHECK(counts(m, 2, Phase::backward_input, kImages).passed == 8 * (24 + 16) + (10 + 16) * 8);
  // A norm before the first block (2·8 for 10 rows; backward 3·8 for dx and 2·8 for the sums), and
  // none after the last.
  m.input_norm = true;
  m.final_norm = false;
  CHECK(counts(m, 0, Phase::forward, kImages).passed == 10 * 16 + 10 * 24 + 10 * 16);
  CHECK(counts(m, 0, Phase::backward_input, kImages).passed == 10 * (24 + 16) + 8 * 16);
  CHECK(counts(m, 2, Phase::forward, kImages).passed == 8 * 16);
  CHECK(counts(m, 2, Phase::backward_input, kImages).passed == (10 + 16) * 8);
  m.class_token = m.input_norm = false;
  CHECK(counts(m, 2, Phase::forward, kImages) == Counts{});
  m.rotary = true;  // no table of positions
  CHECK(counts(m, 0, Phase::forward, kImages).passed == 0);
}

// The same kernels as tests/exec/queued/layer_counts_test.cpp counts on a device, and their bytes.
TEST_CASE("a decoder block and a head as exec/ runs them on a GPU") {
  const Module m = small_language();
  // Before the block, once per op: lists of 10 numbers of 8 bytes (20 values of 4), 2 launches.
  // Angles, 2 for each of 10 rows: 10 positions read and written, 20 angles of 8 bytes (80 values),
  // 3 launches for frequencies and 2 more; cosines and sines 14 · 20 · 8 bytes (560), 5 launches;
  // two tables of 40 numbers narrowed, 12 bytes each (240), 2 launches.
  // Per row: norms 2·8 twice, q and k rotated 2·12, the gate 3·16, sums 3·8 twice; 2 + 1 + 1 + 2
  // launches.
  CHECK(own_counts(m, 1, Phase::forward, kTen) == Counts{2.0 * 10 * 576, 1040 + 576, 4.0 * 31 * 8,
                                                         240, 900 + 10 * (32 + 24 + 48 + 48),
                                                         14 + 6});
  // The gate 5·16; norms 3·8 twice, each with one launch that adds up its sums over rows; sums 3·8
  // twice; q and k rotated again 2·12, and gradients of q, k and v rotated back 2·16.
  CHECK(own_counts(m, 1, Phase::backward_input, kTen) ==
        Counts{2.0 * 10 * 576, 1040 + 576, 8.0 * 31 * 8, 480, 10 * (80 + 48 + 48 + 24 + 32),
               1 + 4 + 2 + 1 + 1});
  // Sums of two norms accumulated into gradients.
  CHECK(own_counts(m, 1, Phase::backward_weight, kTen) ==
        Counts{2.0 * 10 * 576, 1040 + 2 * 576, 0, 0, 0, 2});
  // 3 rows listed and selected 2·8, normalized 2·8, 32 logits each read once (1 launch), then 10
  // numbers each (5 launches).
  CHECK(own_counts(m, 3, Phase::forward, kTen) ==
        Counts{2.0 * 3 * 8 * 32, 24 + 256 + 96, 0, 0, 3 * (16 + 16 + 32 + 10), 2 + 1 + 1 + 5});
  // Gradients of 32 logits each in place 2·32 (with the loss: 2 launches), of the norm 3·8 (2
  // launches); zeros for 10 rows, 3 of them read and written.
  CHECK(own_counts(m, 3, Phase::backward_input, kTen) ==
        Counts{2.0 * 3 * 8 * 32, 24 + 256 + 96, 0, 0, 3 * (64 + 24) + 10 * 8 + 3 * 24, 2 + 2 + 2});
  // Half of the vocabulary: 16 logits, then 21 numbers each (9 launches), and the selection of
  // labels in the own part: 6 numbers of 8 bytes each (6 launches).
  CHECK(own_counts(m, 3, Phase::forward, kTen, {.tp = 2}) ==
        Counts{2.0 * 3 * 8 * 16, 24 + 128 + 48, 0, 0, 3 * (16 + 16 + 16 + 21 + 12),
               2 + 1 + 1 + 9 + 6});
}

}  // namespace polyphony
