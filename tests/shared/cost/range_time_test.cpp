// Times of layer ranges compared with the kernels and collectives that they expand to: ranges whose
// blocks differ, and rows that a chunk receives once over model edges.
#include <doctest/doctest.h>

#include "shared/cost/cost_model.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/slow_memory.h"
#include "tests/shared/support/small_diffusion.h"

namespace polyphony {
namespace {

// Two ranks, 1 GB/s, 10 us a hop: of S bytes an all-reduce takes 20 us + S ns, others half.
const Ring kPair{2, 1, BytesPerSecond(1e9), BytesPerSecond(1e9), Seconds(10e-6)};

double collectives_time(const Expansion& inside) {
  double total = 0;
  for (const InnerCollective& one : inside.collectives) {
    const bool reduced = one.kind == CollectiveKind::all_reduce;
    total += (reduced ? 2 : 1) * (10e-6 + static_cast<double>(one.bytes.value) / 2e9);
  }
  return total;
}

void check_range(const Module& module, LayerRange range, Phase phase, const WorkSize& size,
                 const ChunkContext& context) {
  const HardwareProfile profile = test::slow_memory();
  const Expansion inside = expand(module, range, phase, size, context);
  double expected = collectives_time(inside);
  for (const Kernel& kernel : inside.kernels)
    expected += kernel_time(profile, kernel, context.precision).count();
  CHECK(range_time(module, range, phase, size, context, {kPair, {}, {}}, profile).count() ==
        doctest::Approx(expected).epsilon(1e-12));
}

// Two blocks of four heads, without a feed-forward part yet.
Module two_blocks(int hidden) {
  Module module;
  module.kind = ModuleKind::language;
  module.layers = 2;
  module.hidden = hidden;
  module.heads = module.kv_heads = 4;
  module.head_dim = hidden / 4;
  module.vocab = 64;
  return module;
}

}  // namespace

TEST_CASE("the last hop of a ring's gradients is exposed; with two ranks, so is the second block") {
  Module module = two_blocks(64);
  module.ffn = 128;
  // Attention of 8·64 flops a pair, 0.512 s; rows that move take micro-seconds.
  const WorkSize size{.tokens = 32, .pairs = 1'000'000'000, .sequences = 1, .gathered = 128};
  ChunkContext context{
      .cp = 4, .cp_attention = ContextAttention::ring, .precision = NumberFormat::bf16};
  HardwareProfile profile = test::slow_memory();
  profile.device.bf16 = FlopsPerSecond(1e12);
  const auto time = [&](Phase phase, BytesPerSecond rate, Seconds hop) {
    const Ring ring{context.cp, 1, rate, rate, hop};
    return range_time(module, {1, 2}, phase, size, context, {{}, ring, {}}, profile).count();
  };
  const auto shown = [&](Phase phase, double rate, double hop) {
    return time(phase, BytesPerSecond(rate), Seconds(hop)) -
           time(phase, BytesPerSecond(1e30), Seconds(0));
  };
  CHECK(shown(Phase::forward, 1e9, 10e-6) < 1e-12);
  // A rank's 32 rows of 2·64 numbers in fp32.
  const double hop = 10e-6 + 32 * 128 * 4 / 1e9;
  CHECK(shown(Phase::backward, 1e9, 10e-6) / hop == doctest::Approx(1));
  CHECK(shown(Phase::backward_input, 1e9, 10e-6) / hop == doctest::Approx(1));
  // Of two ranks, hops of 3/4 of the attention: keys overlap with half of it, 1/4 is exposed;
  // gradients are exposed.
  context.cp = 2;
  CHECK(shown(Phase::backward, 1e30, 0.75 * 0.512) == doctest::Approx(0.512).epsilon(1e-3));
}

TEST_CASE("blocks with windows and blocks over whole images have separate prices") {
  Module vision = examples::vision_12b();
  vision.layers = 6;
  vision.window = 2;
  vision.full_attention_blocks = {2, 5};
  const WorkSize size{.tokens = 256, .pairs = 65'536, .sequences = 1, .window_pairs = 1024};
  check_range(vision, {0, 8}, Phase::forward, size, {});
  check_range(vision, {1, 7}, Phase::backward, size, {});
  // By hand: a block over whole images compared with one with windows, 4·5120 flops at 1e12 a pair
  // more.
  const auto time = [&](int begin) {
    const LayerRange one{static_cast<std::uint16_t>(begin), static_cast<std::uint16_t>(begin + 1)};
    return range_time(vision, one, Phase::forward, size, {}, {}, test::slow_memory()).count();
  };
  HardwareProfile arithmetic = test::slow_memory();
  arithmetic.device.memory_rate = BytesPerSecond(1e30);
  const auto flops_time = [&](LayerRange range) {
    return range_time(vision, range, Phase::forward, size, {}, {}, arithmetic).count();
  };
  CHECK(time(3) >= time(2));
  CHECK(flops_time({1, 7}) - 6 * flops_time({1, 2}) ==
        doctest::Approx(2 * 4.0 * 5120 * (65'536 - 1024) / 1e12));
}

TEST_CASE("recomputed blocks and the other blocks of a chunk have separate prices") {
  const Module language = examples::llama_70b();
  const WorkSize size{
      .tokens = 64, .pairs = 2080, .text_tokens = 64, .loss_tokens = 64, .sequences = 1};
  ChunkContext context{.recompute = Recompute::full, .recomputed = {3, 5}};
  check_range(language, {0, 9}, Phase::backward, size, context);
  // By hand: two forwards of a block more than without.
  const auto time = [&](LayerRange range, Phase phase) {
    return range_time(language, range, phase, size, context, {}, test::slow_memory()).count();
  };
  const double again = time({1, 9}, Phase::backward), block = time({1, 2}, Phase::forward);
  context.recompute = Recompute::none;
  CHECK(again - time({1, 9}, Phase::backward) == doctest::Approx(2 * block));
}

namespace {

// One of two ranks of a sequence of 1,000 rows.
constexpr WorkSize kHalf{.tokens = 500,
                         .pairs = 375'000,
                         .sequences = 1,
                         .samples = 1,
                         .gathered = 1000,
                         .gathered_pairs = 500'500};

// What a link of `rate` between the two makes of one block, in seconds.
double link_cost(const ChunkContext& context, Phase phase, double rate) {
  Module module = two_blocks(128);
  module.ffn = 256;
  const auto time = [&](double each) {
    const Ring ring{2, 1, BytesPerSecond(each), BytesPerSecond(each), Seconds(0)};
    return range_time(module, {1, 2}, phase, kHalf, context, {{}, ring, {}}, test::slow_memory());
  };
  return (time(rate) - time(1e18)).count();
}

}  // namespace

TEST_CASE("context parallelism: ring transfers overlap with the attention, others do not") {
  const auto more = [](ContextAttention way, double rate) {
    return link_cost({.cp = 2, .cp_attention = way}, Phase::forward, rate);
  };
  // Keys and values of 1,000 rows, 4 heads of 32 each in fp32: half of 1,024,000 bytes goes each
  // way.
  const double gathered = 512'000;
  CHECK(more(ContextAttention::all_gather, 1e9) == doctest::Approx(gathered / 1e9));
  // 4·375,000·128 flops at 1e12 are 192 us, but 4·500·128 + 4·1000·128 bytes and two calls take
  // longer.
  const double attention = (2 * 500 + 2 * 1000) * 128 * 4 / 1e9 + 2e-6;
  // The attention to the first of two blocks of keys overlaps with a message.
  CHECK(more(ContextAttention::ring, 1e9) == doctest::Approx(0).epsilon(1e-9));
  CHECK(more(ContextAttention::ring, 1e8) == doctest::Approx(gathered / 1e8 - attention / 2));
  // q, k and v there, the output back, of half of the heads: 4 · 1,000 · 64 numbers, half of them
  // sent.
  CHECK(more(ContextAttention::ulysses, 1e9) == doctest::Approx(4 * 1000 * 64 * 4 / 2 / 1e9));
}

TEST_CASE(
    "context parallelism: gathers of keys by heads overlap with the previous heads, and the last "
    "gradients are exposed") {
  const auto more = [](int heads, Phase phase, double rate, Recompute recompute) {
    return link_cost({.cp = 2, .cp_heads = heads, .recompute = recompute}, phase, rate);
  };
  const auto forward = [&](int heads, double rate) {
    return more(heads, Phase::forward, rate, Recompute::none);
  };
  const auto backward = [&](int heads, double rate) {
    return more(heads, Phase::backward, rate, Recompute::none);
  };
  // As above; all 4 heads at once, kept: forward they come, backward gradients leave.
  const double gathered = 512'000;
  CHECK(forward(0, 1e9) == doctest::Approx(gathered / 1e9));
  CHECK(backward(0, 1e9) == doctest::Approx(gathered / 1e9));
  // One head at a time, forward: the first of 4 gathers is exposed, three overlap with the
  // attention of three heads, which is 4·500·128 and 4·1,000·128 bytes and a launch each of 4.
  const double attention = (2 * 500 + 2 * 1000) * 128 * 4 / 1e9 + 4e-6;
  CHECK(forward(1, 1e9) == doctest::Approx(gathered / 4 / 1e9));
  CHECK(forward(1, 1e8) == doctest::Approx(gathered / 1e8 - attention * 3 / 4));
  // Two at a time: half is exposed, half overlaps with half of the attention.
  const double pairs = (2 * 500 + 2 * 1000) * 128 * 4 / 1e9 + 2e-6;
  CHECK(forward(2, 1e9) == doctest::Approx(gathered / 2 / 1e9));
  CHECK(forward(2, 1e8) == doctest::Approx(gathered / 1e8 - pairs / 2));
  // Backward, keys are gathered again and gradients are sent: the first gather and the last send
  // are exposed; all of the attention overlaps with messages: 4·500·128 and 4·1,000·128 numbers,
  // four launches.
  const double back = (4 * 500 + 4 * 1000) * 128 * 4 / 1e9 + 4e-6;
  CHECK(backward(1, 1e9) == doctest::Approx(2 * gathered / 4 / 1e9));
  CHECK(backward(1, 1e8) == doctest::Approx(2 * gathered / 1e8 - back));
  // Recomputed attention: keys are gathered again, overlapped with three of its four heads.
  CHECK(more(1, Phase::backward, 1e8, Recompute::selective) ==
        doctest::Approx(3 * gathered / 1e8 - back - attention * 3 / 4));
}

TEST_CASE("a chunk receives the rows of model edges once") {
  const Module language = examples::llama_70b();
  const WorkSize size{
      .tokens = 64, .pairs = 2080, .text_tokens = 24, .loss_tokens = 8, .sequences = 1};
  ChunkContext context{.tp = 2, .added_edges = 1};
  check_range(language, {3, 9}, Phase::forward, size, context);
  check_range(language, {3, 9}, Phase::backward, size, context);
  // By hand, two launches of (2·64 + 3·40)·8192·4 bytes more than without.
  const auto time = [&] {
    return range_time(language, {3, 9}, Phase::forward, size, context, {}, test::slow_memory())
        .count();
  };
  const double with = time();
  context.added_edges = 0;
  CHECK(with - time() == doctest::Approx(2e-6 + (2 * 64 + 3 * 40) * 8192 * 4 / 1e9));
  context.sp = true;
  context.added_edges = 2;
  check_range(language, {3, 9}, Phase::forward, size, context);
  check_range(language, {3, 9}, Phase::backward, size, context);
}

TEST_CASE("a chunk receives the rows for cross-attention once") {
  Module module = examples::small_diffusion();
  module.heads = module.kv_heads = 2;
  module.head_dim = 4;
  module.layers = 4;
  const WorkSize size{
      .tokens = 20, .pairs = 200, .sequences = 2, .condition = 6, .cross_pairs = 60};
  for (const bool sp : {false, true})
    for (const LayerRange range : {LayerRange{0, 6}, LayerRange{1, 5}, LayerRange{2, 6}})
      for (const Phase phase : {Phase::forward, Phase::backward})
        check_range(module, range, phase, size, {.tp = 2, .sp = sp});
}

TEST_CASE("the first block of a LoRA module") {
  Module language = examples::llama_70b();
  language.trainable = Trainable::lora;
  language.lora_rank = 8;
  const WorkSize size{
      .tokens = 64, .pairs = 2080, .text_tokens = 64, .loss_tokens = 64, .sequences = 1};
  for (const bool wanted : {false, true})
    check_range(language, {0, 9}, Phase::backward, size, {.tp = 2, .input_grad = wanted});
}

TEST_CASE("unfused stacks: biases and dropout are separate kernels") {
  // 128 tokens in fp32 over 2 ranks without sequence parallelism: 100 wide with 4 heads, MLP of
  // 400.
  Module module = two_blocks(100);
  module.ffn = 400;
  const WorkSize size{.tokens = 128, .pairs = 128 * 129 / 2, .sequences = 1};
  ChunkContext context{.tp = 2};
  HardwareProfile fused = test::slow_memory(), unfused = fused;
  fused.dispatch = unfused.dispatch = Seconds(0);
  unfused.stack.unfused = true;
  const auto more = [&](LayerRange range, Phase phase) {
    const auto time = [&](const HardwareProfile& profile) {
      return range_time(module, range, phase, size, context, {kPair, {}, {}}, profile).count();
    };
    return (time(unfused) - time(fused)) * 1e9;  // bytes, at 1 GB/s
  };
  // Inside the cut (300 + 400) / 2, whole 2 · 100: 550 a token, read and written; read backward.
  CHECK(more({1, 2}, Phase::forward) == doctest::Approx(128 * 550 * 2 * 4));
  CHECK(more({1, 2}, Phase::backward) == doctest::Approx(128 * 550 * 4));
  CHECK(more({1, 2}, Phase::backward_weight) == doctest::Approx(0));
  CHECK(more({0, 1}, Phase::forward) == doctest::Approx(0));  // the embedding
  // Dropout behind the two whole ones: read and written, a byte of mask.
  unfused.stack.memory.dropout = true;
  CHECK(more({1, 2}, Phase::forward) == doctest::Approx(128 * (550 * 2 * 4 + 200 * 9)));
  // Sequence parallelism: of half the rows. What is recomputed is paid again.
  context.sp = true;
  CHECK(more({1, 2}, Phase::forward) ==
        doctest::Approx(128 * 350 * 2 * 4 + 64 * 200 * (2 * 4 + 9)));
  context.recompute = Recompute::full;
  CHECK(more({1, 2}, Phase::backward) ==
        doctest::Approx(128 * 350 * 3 * 4 + 64 * 200 * (3 * 4 + 2 * 9)));
}

TEST_CASE("experts: with one copy per rank, the host waits for the counts of arriving tokens") {
  Module module = two_blocks(64);
  module.experts = 4;
  module.experts_per_token = 2;
  module.expert_ffn = 32;
  const WorkSize size{.tokens = 64, .pairs = 64 * 65 / 2, .sequences = 1};
  ChunkContext context{.ep = 2};
  HardwareProfile profile = test::slow_memory();
  const auto time = [&](Phase phase) {
    return range_time(module, {1, 3}, phase, size, context, {{}, {}, kPair}, profile).count();
  };
  const double before = time(Phase::forward), backward = time(Phase::backward);
  profile.stack.routing = Seconds(5e-3);
  CHECK(time(Phase::forward) == doctest::Approx(before));
  profile.stack.one_copy = true;
  CHECK(time(Phase::forward) == doctest::Approx(before + 2 * 5e-3));
  CHECK(time(Phase::backward) == doctest::Approx(backward));
  profile.counts_on_device = true;
  CHECK(time(Phase::forward) == doctest::Approx(before));
  profile.counts_on_device = false;
  context.ep = 1;
  const double alone = time(Phase::forward);
  profile.stack.routing = Seconds(0);
  CHECK(time(Phase::forward) == doctest::Approx(alone));
}

}  // namespace polyphony
