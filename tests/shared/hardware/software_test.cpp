#include "shared/hardware/software.h"

#include <doctest/doctest.h>

#include <cmath>

#include "shared/cost/collectives.h"
#include "shared/cost/cost_model.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/round_machine.h"

namespace polyphony {
namespace {

Kernel causal_attention() {
  // 1 head of width 100, 1000 tokens, half of the square attends: 4 · 500,000 · 100 flops.
  return {.kind = KernelKind::attention,
          .layer = LayerKind::decoder_block,
          .flops = Flops(4 * 5e5 * 100),
          .bytes = Bytes(800'000),
          .launches = 1,
          .k = 100};
}

// Seconds of the backward pass of a Llama-3.1-70B block, 4096 tokens, TP8 with sequence
// parallelism.
double block_backward(const Ring& ring, const HardwareProfile& profile) {
  const WorkSize size{
      .tokens = 4096, .pairs = 8'390'656, .text_tokens = 4096, .loss_tokens = 4096, .sequences = 1};
  const ChunkContext context{.tp = 8, .sp = true, .precision = NumberFormat::bf16};
  return range_time(examples::llama_70b(), {1, 2}, Phase::backward, size, context, {ring, {}, {}},
                    profile)
      .count();
}

}  // namespace

TEST_CASE("eager attention computes whole squares and moves the scores") {
  HardwareProfile profile = examples::plain();
  // 2e8 flops at 1e13: 20 us, longer than 0.8 us of memory.
  CHECK(kernel_time(profile, causal_attention(), NumberFormat::bf16).count() ==
        doctest::Approx(20e-6));
  profile.stack.eager_attention = true;
  // 4e8 flops: 40 us; 1e6 scores · 6.5 passes · 2 bytes = 13e6 bytes: 13 us; 0.8 us.
  CHECK(kernel_time(profile, causal_attention(), NumberFormat::bf16).count() ==
        doctest::Approx(53.8e-6));
  // Flash kernels of the previous generation reach half the peak.
  profile.stack.eager_attention = false;
  profile.stack.early_attention = true;
  profile.early_attention_efficiency = 0.5;
  CHECK(kernel_time(profile, causal_attention(), NumberFormat::bf16).count() ==
        doctest::Approx(40e-6));
  profile.early_attention_efficiency = 1;
  profile.stack.eager_attention = true;
  // In an encoder all pairs attend, so the flops are those of the whole square.
  Kernel encoder = causal_attention();
  encoder.layer = LayerKind::encoder_block;
  CHECK(kernel_time(profile, encoder, NumberFormat::bf16).count() == doctest::Approx(27.3e-6));
}

TEST_CASE("fused experts run like a single GEMM, without casts and activation kernels") {
  HardwareProfile profile = examples::plain();
  profile.grouped_efficiency = 0.5;
  profile.stack.matrix = NumberFormat::fp8;
  Module sparse = examples::llama_70b();
  sparse.experts = 8;
  sparse.experts_per_token = 2;
  sparse.expert_ffn = 1024;
  const WorkSize size{
      .tokens = 4096, .pairs = 8'390'656, .text_tokens = 4096, .loss_tokens = 4096, .sequences = 1};
  const auto time = [&] {
    return range_time(sparse, {1, 2}, Phase::forward, size, {.precision = NumberFormat::bf16}, {},
                      profile)
        .count();
  };
  const double apart = time();
  profile.stack.fused_experts = true;
  // 8192 slots, three GEMMs of 2 · 8192 · 8192 · 1024 flops: at half of 20e12, then at all of it;
  // 1,024 rows per expert take as long as 1,059.
  const double products = 3 * 2.0 * 8192 * 8192 * 1024 * 1059 / 1024;
  // Casts move the same bytes as the GEMMs: input and output rows and the weights of 8 experts, 2
  // bytes each; up and gate together, then down. SwiGLU: 5 passes over 8192 · 1024.
  const double casts = 2.0 * (8192.0 * (8192 + 2048) + 8 * 8192.0 * 2048) +
                       2.0 * (8192.0 * (1024 + 8192) + 8 * 8192.0 * 1024);
  const double activation = 5 * 2.0 * 8192 * 1024;
  CHECK(apart - time() ==
        doctest::Approx(products / 10e12 - products / 20e12 + (casts + activation) / 1e12));
}

TEST_CASE("a stack scales the traffic and launches of memory-bound kernels only") {
  HardwareProfile profile = examples::plain();
  profile.dispatch = Seconds(1e-6);
  profile.stack.traffic = 0.5;
  profile.stack.launches = 0.25;
  const Kernel norm{.kind = KernelKind::elementwise, .bytes = Bytes(4'000'000), .launches = 4};
  CHECK(kernel_time(profile, norm, NumberFormat::bf16).count() == doctest::Approx(2e-6 + 1e-6));
  CHECK(kernel_time(profile, causal_attention(), NumberFormat::bf16).count() ==
        doctest::Approx(21e-6));
  profile.stack.host = Seconds(8e-6);
  CHECK(launch_time(profile, norm).count() == doctest::Approx(8e-6));
  CHECK(launch_time(profile, causal_attention()).count() == doctest::Approx(8e-6));
}

TEST_CASE("GEMMs of blocks with weights run in the matrix format, after a cast") {
  HardwareProfile profile = examples::plain();
  profile.stack.matrix = NumberFormat::fp8;
  const Kernel product{.kind = KernelKind::gemm,
                       .layer = LayerKind::decoder_block,
                       .flops = Flops(2e9),
                       .bytes = Bytes(6'000'000),
                       .m = 1000,
                       .n = 1000,
                       .k = 1000};
  // 2e9 flops at 20e12: 100 us; casting the operands: 6 us.
  CHECK(kernel_time(profile, product, NumberFormat::bf16).count() == doctest::Approx(106e-6));
  // Two more launches for the casts. LoRA pairs are not cast: 6 us of memory time.
  profile.stack.host = Seconds(1e-6);
  CHECK(launch_time(profile, product).count() == doctest::Approx(3e-6));
  Kernel pair = product;
  pair.k = 16;
  pair.flops = Flops(2 * 16e6);
  CHECK(kernel_time(profile, pair, NumberFormat::bf16).count() == doctest::Approx(6e-6));
  CHECK(launch_time(profile, pair).count() == doctest::Approx(1e-6));
  Kernel head = product;
  head.layer = LayerKind::language_head;
  CHECK(kernel_time(profile, head, NumberFormat::bf16).count() == doctest::Approx(200e-6));
}

TEST_CASE("an op takes the larger of its kernels' time and of the host's launch time") {
  const Module language = examples::llama_70b();
  const WorkSize size{
      .tokens = 64, .pairs = 2080, .text_tokens = 64, .loss_tokens = 64, .sequences = 1};
  HardwareProfile profile = examples::plain();
  const auto time = [&] {
    return range_time(language, {1, 2}, Phase::forward, size, {}, {}, profile).count();
  };
  int launches = 0;
  for (const Kernel& kernel : expand(language, {1, 2}, Phase::forward, size, {}).kernels)
    launches += kernel.launches;
  const double device = time();
  profile.stack.host = Seconds(1e-9);
  CHECK(time() == device);
  profile.stack.host = Seconds(1);
  CHECK(time() == doctest::Approx(launches));
}

TEST_CASE("collectives of a column-parallel layer are hidden by its GEMMs, as long as these last") {
  HardwareProfile profile = examples::plain();
  Ring ring{8, 1, BytesPerSecond(100e9), BytesPerSecond(100e9), Seconds(0)};
  const auto time = [&] { return block_backward(ring, profile); };
  const double alone = time();
  profile.stack.tensor_overlap = 1;
  // Two gathers for weight gradients and two sums, each with 7/8 of 4096 · 8192 · 2 bytes at 1e11
  // B/s: 0.59 ms. This is shorter than the input and weight gradient GEMMs of qkv, 8.6 ms for
  // 2 · 4096 · 8192 · 10240/8 flops at 1e13, and those of gate and up.
  CHECK(alone - time() == doctest::Approx(4 * 7 / 8.0 * 4096 * 8192 * 2 / 1e11));
  // At 1e9 B/s they take 58.7 ms each, and a GEMM hides as much as it lasts: 8.6 ms, and 48.1 ms
  // for the one with 2 · 28672/8 columns.
  const double qkv = 2.0 * 4096 * 8192 * 10240 / 8 / 1e13, gate_up = qkv * 2 * 28672 / 10240;
  ring.rate = ring.exchange = BytesPerSecond(1e9);
  const double slow = time();
  profile.stack.tensor_overlap = 0;
  CHECK(time() - slow == doctest::Approx(2 * (qkv + gate_up)).epsilon(1e-6));
  profile.stack.tensor_overlap = 1;
  ring.rate = ring.exchange = BytesPerSecond(100e9);
  // Also the two gathers of output gradients; their GEMMs last longer.
  const double weights_apart = time();
  profile.stack.pipelined = 1;
  CHECK(weights_apart - time() == doctest::Approx(2 * 7 / 8.0 * 4096 * 8192 * 2 / 1e11));
  profile.stack.pipelined = 0;
  profile.stack.tensor_overlap = 1e-6;
  CHECK(alone - time() < 1e-3 * alone);
}

TEST_CASE("a collective takes a share of the device from the compute that hides it") {
  HardwareProfile profile = examples::plain();
  Ring ring{8, 1, BytesPerSecond(100e9), BytesPerSecond(100e9), Seconds(0)};
  const auto time = [&] { return block_backward(ring, profile); };
  profile.stack.tensor_overlap = 1;
  // C = four collectives of 7/8 of 4096 · 8192 · 2 bytes at 1e11 B/s, all hidden. While they run,
  // 15 % of the compute rate is lost, and that work is done later.
  const double short_one = time(), hidden = 4 * 7 / 8.0 * 4096 * 8192 * 2 / 1e11;
  profile.stack.taken_inside = 0.15;
  CHECK(time() - short_one == doctest::Approx(0.15 * hidden).epsilon(1e-6));
  profile.stack.taken_between = 0.5;  // only for rings over several nodes
  CHECK(time() - short_one == doctest::Approx(0.15 * hidden).epsilon(1e-6));
  ring.nodes = 2;
  CHECK(time() - short_one == doctest::Approx(0.5 * hidden).epsilon(1e-6));
  // If collectives last longer than their GEMMs, these are hidden completely, however slow they
  // get.
  ring.rate = ring.exchange = BytesPerSecond(1e8);
  const double slowed = time();
  profile.stack.taken_between = 0;
  CHECK(slowed == doctest::Approx(time()).epsilon(1e-9));
}

TEST_CASE("the fastest of NCCL's protocols for the size is used") {
  Cluster cluster;
  cluster.nodes = 4;
  cluster.ranks_per_node = 8;
  cluster.node_link = {BytesPerSecond(100e9), Seconds(1e-6)};
  cluster.fabric_link = {BytesPerSecond(10e9), Seconds(5e-6)};
  HardwareProfile profile = examples::plain();
  profile.collectives = CollectiveLibrary::nccl;
  profile.collective_efficiency = profile.fabric_efficiency = 1;
  std::vector<Rank> eight, all;
  for (std::size_t r = 0; r < 8; ++r) eight.emplace_back(r);
  for (std::size_t r = 0; r < 32; ++r) all.emplace_back(r);
  const auto time = [&](const std::vector<Rank>& members, std::int64_t bytes) {
    return ring_time(make_ring(members, cluster, profile), CollectiveKind::all_reduce, Bytes(bytes))
        .count();
  };
  // LL: 6.6 us and 14 hops of 0.6; 14/8 · 800 bytes at 50e9 are 28 ns.
  CHECK(time(eight, 800) == doctest::Approx(15.028e-6));
  // Simple: 8.4 us and 14 hops of 3.4; 14e9 bytes at 100e9.
  CHECK(time(eight, 8'000'000'000) == doctest::Approx(0.14 + 56e-6));
  // 4 nodes, small: a tree, 6.8 us, 2·7 hops of 0.6 inside and 2·log2(4) of 5 between.
  CHECK(time(all, 32) == doctest::Approx(35.2e-6).epsilon(1e-3));
  // Large: rings through 8 NICs, 80e9 B/s; 62 hops, 6 between nodes: 8.4 + 56·3.4 + 6·14 us.
  CHECK(time(all, 32'000'000'000) == doctest::Approx(62e9 / 80e9 + 282.8e-6));
}

TEST_CASE("gradients are reduced in the stack's format") {
  HardwareProfile profile = examples::plain();
  CHECK(reduced_bytes(profile, NumberFormat::bf16, Bytes(4000)) == Bytes(4000));
  profile.stack.gradient_bytes = 2;  // the executor reduces in fp32
  CHECK(reduced_bytes(profile, NumberFormat::bf16, Bytes(4000)) == Bytes(2000));
}

TEST_CASE("stacks in JSON") {
  HardwareProfile profile = *find_profile("h100-roofline");
  for (const SoftwareStack& stack : shipped_stacks()) {
    profile.stack = stack;
    profile.stack.matrix = NumberFormat::fp8;
    CHECK(parse_profile(to_json(profile), "p.json") == profile);
  }
  CHECK(set_number(profile, "gemm_efficiency", 0.5));
  CHECK(profile.gemm_efficiency == 0.5);
  CHECK(set_number(profile, "dispatch", 2e-6));
  CHECK(profile.dispatch == Seconds(2e-6));
  CHECK(set_number(profile.stack, "host", 1e-6));
  CHECK(profile.stack.host == Seconds(1e-6));
  CHECK_FALSE(set_number(profile, "traffic", 1));
}

}  // namespace polyphony
