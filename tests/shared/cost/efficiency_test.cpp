// Efficiencies of kernels, updates and devices, computed by hand: grouped GEMMs, peak rates of
// number formats, narrow GEMMs, host launches, optimizer bytes, power.
#include <doctest/doctest.h>

#include "shared/chunk/held_sizes.h"
#include "shared/cost/cost_model.h"
#include "shared/hardware/devices.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/round_machine.h"

namespace polyphony {
namespace {

// `count` products of 1000 × 1000 × k: 2e6·k FLOPs each.
Kernel products(int count, std::int64_t k) {
  return {.kind = KernelKind::gemm,
          .layer = LayerKind::decoder_block,
          .flops = Flops(2e6 * static_cast<double>(k) * count),
          .bytes = Bytes(0),
          .launches = count,
          .m = 1000,
          .n = 1000,
          .k = k};
}

double microseconds(const HardwareProfile& profile, const Kernel& kernel) {
  return kernel_time(profile, kernel, NumberFormat::bf16).count() * 1e6;
}

}  // namespace

TEST_CASE("small GEMMs and those of experts reach less of the peak rate") {
  HardwareProfile profile = examples::plain();
  profile.gemm_efficiency = 0.8;
  profile.gemm_half_size = 100;
  profile.grouped_efficiency = 0.5;
  // m·n·k = 8e6: s = 200, 0.8 · 200/300 = 8/15 of 10e12; 16e6 FLOPs.
  CHECK(microseconds(profile, products(1, 8)) == doctest::Approx(1.6 * 15 / 8));
  // Of experts, one or four: half of that, 1,000 rows as if they were 1,035.
  for (const int experts : {1, 4}) {
    Kernel grouped = products(experts, 8);
    grouped.experts = true;
    CHECK(microseconds(profile, grouped) ==
          doctest::Approx(experts * 2 * 1.6 * 15 / 8 * 1035 / 1000));
  }
  // Without, each is a product of its own.
  CHECK(microseconds(profile, products(4, 8)) == doctest::Approx(4 * 1.6 * 15 / 8));
  // s = 900: 0.8 · 0.9.
  CHECK(microseconds(profile, products(1, 729)) == doctest::Approx(2 * 72.9 / 0.72));
  // No half size: flat.
  profile.gemm_half_size = 0;
  CHECK(microseconds(profile, products(1, 8)) == doctest::Approx(1.6 / 0.8));
  // Memory does not mind: 80e6 bytes at 1e12.
  Kernel loaded = products(4, 8);
  loaded.bytes = Bytes(80'000'000);
  CHECK(microseconds(profile, loaded) == doctest::Approx(80));
}

TEST_CASE("attention efficiency by keys per query, head width and direction") {
  HardwareProfile profile = examples::plain();
  profile.attention_efficiency = 0.5;
  profile.attention_backward = 0.8;
  profile.attention_half_keys = 200;
  Kernel kernel{.kind = KernelKind::attention,
                .layer = LayerKind::decoder_block,
                .flops = Flops(1e9),
                .m = 600,
                .n = 1,
                .k = 128};
  // 0.5 · 600/800 of 10e12.
  CHECK(microseconds(profile, kernel) == doctest::Approx(100 / (0.5 * 0.75)));
  // Heads of 16: (16/128)^(1/3) = 1/2.
  kernel.k = 16;
  CHECK(microseconds(profile, kernel) == doctest::Approx(2 * 100 / (0.5 * 0.75)));
  // Backward: 0.8 of it, and 600/1000.
  kernel.k = 128;
  kernel.n = 2;
  CHECK(microseconds(profile, kernel) == doctest::Approx(100 / (0.5 * 0.8 * 0.6)));
  // Kernels of another kind of attention (no keys): flat. Profiles without a half: by direction.
  kernel.m = 0;
  CHECK(microseconds(profile, kernel) == doctest::Approx(200));
  kernel.m = 600;
  profile.attention_half_keys = 0;
  CHECK(microseconds(profile, kernel) == doctest::Approx(100 / (0.5 * 0.8)));
}

TEST_CASE("narrow GEMMs and their peak rate") {
  HardwareProfile profile = examples::plain();
  profile.stack.matrix = NumberFormat::fp8;
  profile.stack.host = Seconds(1e-6);
  // A side of 64 is wide enough: 128e6 FLOPs at 20e12; three launches, two of them casts.
  CHECK(microseconds(profile, products(1, 64)) == doctest::Approx(6.4));
  CHECK(launch_time(profile, products(1, 64)).count() == doctest::Approx(3e-6));
  CHECK(launch_time(profile, products(4, 64)).count() == doctest::Approx(12e-6));
  // 63 is not: 126e6 at 10e12, one launch.
  CHECK(microseconds(profile, products(1, 63)) == doctest::Approx(12.6));
  CHECK(launch_time(profile, products(1, 63)).count() == doctest::Approx(1e-6));
  // Fused with what is around it, a product of experts is not cast, also where one expert is here.
  Kernel expert = products(1, 64);
  expert.experts = true;
  expert.bytes = Bytes(1'000'000);
  const double apart = microseconds(profile, expert);
  profile.stack.fused_experts = true;
  CHECK(apart - microseconds(profile, expert) == doctest::Approx(1));
  profile.stack.fused_experts = false;
  // Encoder and diffusion blocks too, heads and projectors not.
  Kernel other = products(1, 64);
  for (const LayerKind layer : {LayerKind::encoder_block, LayerKind::diffusion_block}) {
    other.layer = layer;
    CHECK(microseconds(profile, other) == doctest::Approx(6.4));
  }
  for (const LayerKind layer : {LayerKind::language_head, LayerKind::projector_mlp}) {
    other.layer = layer;
    CHECK(microseconds(profile, other) == doctest::Approx(12.8));
  }
}

TEST_CASE("the peak rate of a device in every number format") {
  // Data sheets, dense: A100 312 TFLOP/s bf16, TF32 half; H100 989, fp8 twice; B200 2250, fp4 four
  // times; fp64 half of fp32.
  const auto tera = [](const char* name, NumberFormat format) {
    return peak(find_device(name)->device, format).value / 1e12;
  };
  CHECK(tera("A100-80", NumberFormat::fp64) == 9.75);
  CHECK(tera("A100-80", NumberFormat::fp32) == 19.5);
  CHECK(tera("A100-80", NumberFormat::tf32) == 156);
  CHECK(tera("A100-80", NumberFormat::bf16) == 312);
  CHECK(tera("A100-80", NumberFormat::fp16) == 312);
  CHECK(tera("H100", NumberFormat::fp8) == 1978);
  CHECK(tera("B200", NumberFormat::fp8) == 4500);
  CHECK(tera("GB200", NumberFormat::nvfp4) == 10000);
  CHECK(tera("H200", NumberFormat::nvfp4) == 0);
  CHECK(tera("cpu-core", NumberFormat::tf32) == 0);
  CHECK(tera("cpu-core", NumberFormat::fp64) == doctest::Approx(0.04));
}

TEST_CASE("power of devices, and domains larger than a node") {
  for (const auto& [name, watts] : std::vector<std::pair<const char*, double>>{
           {"A40", 300},      {"L40S", 350},         {"A100-40", 400}, {"A100-80", 400},
           {"H100", 700},     {"H800", 700},         {"H200", 700},    {"H20", 400},
           {"B200", 1000},    {"GB200", 1200},       {"B300", 1100},   {"GB300", 1400},
           {"MI300X", 750},   {"MI325X", 1000},      {"MI355X", 1400}, {"RTX-4090", 450},
           {"RTX-5090", 575}, {"RTX-PRO-6000", 600}, {"A800", 400},    {"cpu-core", 0}}) {
    CAPTURE(name);
    CHECK(find_device(name)->busy_power.value == watts);
    CHECK(find_device(name)->idle_power.value == doctest::Approx(0.3 * watts));
  }
  CHECK(default_domain("GB200", 4) == 72);  // 18 trays
  CHECK(default_domain("GB300", 4) == 72);
  CHECK(default_domain("GB200", 5) == 0);  // not a whole number of them
  CHECK(default_domain("GB200", 72) == 0);
  CHECK(default_domain("H100", 8) == 0);
  CHECK(default_domain("nothing", 8) == 0);
}

TEST_CASE("bytes that an AdamW update moves") {
  // Weight read and written 2, gradient 1, two moments read and written 4, norm 1, zeroes 1: 9.
  CHECK(update_bytes(NumberFormat::fp32) == Bytes(36));
  CHECK(update_bytes(NumberFormat::fp64) == Bytes(72));
  // 16 bits: all that in fp32, and the weight once more.
  CHECK(update_bytes(NumberFormat::bf16) == Bytes(38));
  CHECK(update_bytes(NumberFormat::fp16) == Bytes(38));
  CHECK(update_bytes(NumberFormat::fp8) == Bytes(37));
  // Gradients are fp32 or wider; a stack that reduces in 2 bytes moves half, or a quarter of fp64.
  HardwareProfile profile = examples::plain();
  profile.stack.gradient_bytes = 2;
  CHECK(reduced_bytes(profile, NumberFormat::bf16, Bytes(4000)) == Bytes(2000));
  CHECK(reduced_bytes(profile, NumberFormat::fp64, Bytes(8000)) == Bytes(2000));
}

TEST_CASE("resident parameters, gradients and optimizer state per rank: ZeRO's stages") {
  // Rajbhandari et al., arXiv 1910.02054, fig. 1: bf16, K = 12 (here with gradients in fp32: 4 in
  // place of 2). 1000 trained, 4 ranks.
  const HeldElements thousand{1000, 0};
  const auto held = [&](Shard shard) {
    const HeldBytes bytes = held_bytes(thousand, shard, 4, 0, NumberFormat::bf16);
    return bytes.values + bytes.gradient + bytes.optimizer;
  };
  CHECK(held(Shard::none) == Bytes(1000 * (2 + 4 + 12)));
  CHECK(held(Shard::optimizer) == Bytes(1000 * (2 + 4) + 250 * 12));
  CHECK(held(Shard::gradients) == Bytes(1000 * 2 + 250 * (4 + 12)));
  CHECK(held(Shard::full) == Bytes(250 * (2 + 4 + 12)));
  // Frozen ones are values alone, divided with the rest.
  const HeldBytes frozen = held_bytes({0, 1000}, Shard::full, 4, 0, NumberFormat::bf16);
  CHECK(frozen.values == Bytes(500));
  CHECK(frozen.gathered == Bytes(2000));
  CHECK(frozen.gradient + frozen.optimizer == Bytes(0));
}

}  // namespace polyphony
