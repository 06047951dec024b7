// Extrapolation beyond a profile's fitted ranges, attribution of memory peaks to samples, and model
// FLOPs.
#include <doctest/doctest.h>

#include "shared/chance/extrapolation.h"
#include "shared/cost/model_flops.h"
#include "shared/hardware/devices.h"
#include "shared/lower/lower.h"
#include "shared/program/held_samples.h"
#include "shared/statistics.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/hand_made.h"

using namespace polyphony;

namespace {

// hand_made's messages are 128 bytes, its lanes are pairs.
Program two_lanes() { return hand_made::pipeline({.stages = 2, .microbatches = 2, .lanes = 2}); }

HardwareProfile fitted_on(const Program& program) {
  HardwareProfile profile = *find_profile("h100-roofline");
  profile.certainty.fitted = seen_ranges({&program});
  return profile;
}

bool names(const std::vector<Extrapolation>& found, const std::string& text) {
  for (const Extrapolation& one : found)
    if (one.what.find(text) != std::string::npos) return true;
  return false;
}

Module dense() {
  Module m;
  m.kind = ModuleKind::language;
  m.layers = 3;
  m.hidden = 64;
  m.heads = m.kv_heads = 4;
  m.head_dim = 16;
  m.ffn = 256;
  m.vocab = 1000;
  return m;
}

}  // namespace

TEST_CASE("a Program lies within the ranges seen in it, and nothing of it is extrapolated") {
  const Program program = two_lanes();
  const FittedRanges seen = seen_ranges({&program});
  CHECK(seen.message_bytes == FittedRange{128, 128});
  CHECK(seen.ranks == FittedRange{2, 2});
  CHECK(find_extrapolations(program, fitted_on(program)).empty());
}

TEST_CASE("a GEMM without rows, as of a context without labels, has no size") {
  const Scenario scenario = examples::small_on_cpu(12, 2);
  ModuleLayout grid;
  grid.cp = grid.ranks = 2;
  Layout layout;
  layout.placement = Placement::homogeneous;
  layout.modules = {grid, grid, grid};
  Batch batch;
  for (std::uint32_t s = 0; s < 2; ++s)
    batch.samples.push_back({s, {{Modality::image, 16, 0}, {Modality::text, 20, 1}}});
  const Program program = lower(scenario, layout, make_plan(scenario, layout), batch);
  CHECK(seen_ranges({&program}).gemm_size.value().low > 1);
}

TEST_CASE("larger messages, larger groups and layers without correction are reported") {
  const Program small = two_lanes();
  HardwareProfile profile = fitted_on(small);
  Program large = two_lanes();
  large.messages[0].bytes = Bytes(1 << 20);
  const auto found = find_extrapolations(large, profile);
  REQUIRE(found.size() == 1);
  CHECK(found[0].what == "messages up to 1 MiB; fitted on 128 B to 128 B");
  CHECK(found[0].count == 1);
  CHECK(names(find_extrapolations(hand_made::pipeline({.stages = 2, .lanes = 4}), profile),
              "groups of ranks up to 4"));
  profile.corrections[{LayerKind::decoder_block, Phase::forward}] = 1.1;
  const auto uncorrected = find_extrapolations(small, profile);
  CHECK(names(uncorrected, "decoder_block backward: no correction in the profile"));
  CHECK_FALSE(names(uncorrected, "decoder_block forward"));
  profile.certainty.fitted.message_bytes.reset();
  CHECK(names(find_extrapolations(small, profile), "messages: the profile was fitted on none"));
  // A profile that states nothing is not judged.
  HardwareProfile silent = *find_profile("h100-roofline");
  silent.certainty.fitted = {};
  CHECK(find_extrapolations(large, silent).empty());
}

TEST_CASE("a profile of another stack is reported") {
  HardwareProfile profile = *find_profile("h100-roofline");
  profile.stack.name = "fsdp";
  profile.software = "torch 2.11, NCCL";
  CHECK(other_software("", profile).empty());
  CHECK(other_software("fsdp", profile).empty());
  CHECK(other_software("torch 2.11", profile).empty());
  CHECK(other_software("megatron-core", profile) == "fsdp (torch 2.11, NCCL)");
}

// One microbatch of two samples, 30 and 10 tokens: three quarters of the saved activations are the
// first's.
TEST_CASE("a memory peak is attributed to samples by their rows") {
  Program program = hand_made::pipeline({.stages = 1, .microbatches = 1});
  program.batch.samples.resize(2);
  program.batch.samples[0] = {7, {{Modality::text, 30, 1}}};
  program.batch.samples[1] = {8, {{Modality::text, 10, 1}}};
  program.work_samples = {0, 1};
  program.works[0].samples = {0, 2};
  const Compiled compiled =
      hand_made::compile_sound(hand_made::pipeline({.stages = 1, .microbatches = 1}));
  const Timeline timeline =
      estimate(program, compiled, hand_made::fixed_costs(program, compiled, {})).timeline;
  const auto held = held_samples(program, timeline, Rank(0), Seconds(0.5));
  REQUIRE(held.size() == 2);
  CHECK(held[0].sample == 0);
  CHECK(held[0].bytes.value == 3 * held[1].bytes.value);
  CHECK(held[0].bytes + held[1].bytes == hand_made::kTape);
  // Forward 1 s and backward 2 s: afterwards nothing is held.
  CHECK(held_samples(program, timeline, Rank(0), Seconds(3.5)).empty());
}

// MHA, F = 4h: 72·B·L·s·h² (1 + s/6h + V/12Lh).
TEST_CASE("Megatron's formula equals the paper's for the paper's model") {
  const double b = 8, s = 32, h = 64, layers = 3, v = 1000;
  CHECK(megatron_flops(dense(), b, s).value ==
        doctest::Approx(72 * b * layers * s * h * h * (1 + s / (6 * h) + v / (12 * layers * h))));
}

// Megatron-LM from core 0.12 on. Of 8 experts each token goes to 2; block 0 is dense.
TEST_CASE("Megatron's newer formula counts each block by its kind") {
  Module sparse = dense();
  sparse.experts = 8;
  sparse.experts_per_token = 2;
  sparse.expert_ffn = 32;
  sparse.shared_ffn = 16;
  sparse.gated = true;
  sparse.dense_blocks = 1;
  const double s = 32, standard = 4 * 64 * 64 + s * 64;
  const auto flops = [&](const Module& module) {
    return megatron_flops(module, 8, s, CountedAttention::half).value;
  };
  const double feed_forward = 3 * 64 * 256 + 2 * 3 * 64 * (2 * 32 + 16), logits = 64 * 1000;
  CHECK(flops(sparse) == doctest::Approx(6 * 8 * s * (3 * standard + feed_forward + logits)));
  // Up to core 0.11 all three blocks have the experts, and attention its full square.
  CHECK(
      megatron_flops(sparse, 8, s).value ==
      doctest::Approx(6 * 8 * s * (3 * (standard + s * 64) + 3 * 3 * 64 * (2 * 32 + 16) + logits)));
  // Gates are as wide as the queries.
  Module gated = sparse;
  gated.attention_gate = true;
  CHECK(flops(gated) == doctest::Approx(flops(sparse) + 6 * 8 * s * 3 * 64 * 64));
  // Latent attention: 4 heads of 16 + 8 wide keys and 16 wide values, ranks 24 and 20.
  Module latent = sparse;
  latent.query_rank = 24;
  latent.key_value_rank = 20;
  latent.rotary_dim = 8;
  latent.value_dim = 16;
  const double block = 24 * (64 + 4 * 24 + 1) + 20 * (64 + 4 * 32 + 1) + 64 * 8 + 64 * 64 +
                       s * (4 * 24 + 4 * 16) / 2.0;
  CHECK(flops(latent) == doctest::Approx(6 * 8 * s * (3 * block + feed_forward + logits)));
}

// Blocks: q, k, v, out 4·64², two matrices 2·64·256, two norms of 64; last norm 64; output matrix.
TEST_CASE("torchtitan's formula counts all parameters but the embedding") {
  const double n = 3 * (4 * 64 * 64 + 2 * 64 * 256 + 2 * 64) + 64 + 1000 * 64;
  CHECK(torchtitan_flops(dense(), 8, 32).value ==
        doctest::Approx(8 * 32 * (6 * n + 12.0 * 3 * 4 * 16 * 32)));
}

// Of 8 experts each token goes to 2; block 0 is dense; 3 matrices of 64·32 an expert, router 64·8.
TEST_CASE("torchtitan's formula counts the experts that a token goes to") {
  Module sparse = dense();
  sparse.experts = 8;
  sparse.experts_per_token = 2;
  sparse.expert_ffn = 32;
  sparse.gated = true;
  sparse.dense_blocks = 1;
  const double attention = 4 * 64 * 64 + 2 * 64;
  const double n = 3 * attention + 3 * 64 * 256 + 2 * (64 * 8 + 2 * 3 * 64 * 32) + 64 + 1000 * 64;
  CHECK(torchtitan_flops(sparse, 8, 32).value ==
        doctest::Approx(8 * 32 * (6 * n + 12.0 * 3 * 4 * 16 * 32)));
}

// Own count of one sample of s tokens: products of parameters 6·s·P (no first input gradient to
// leave out: the embedding is a table), attention 4·pairs·A·D forward, twice that backward, in
// causal pairs s(s+1)/2; logits at every row that the executor computes.
TEST_CASE("model FLOPs are 6 N D and half of attention's square") {
  Model model;
  model.modules = {dense()};
  const double s = 32, p = 3 * (4 * 64 * 64 + 2 * 64 * 256) + 1000 * 64;
  const Batch batch{{{0, {{Modality::text, 32, 32}}}}};
  const double expected = 6 * s * p + 12 * (s * (s + 1) / 2) * 3 * 64;
  CHECK(model_flops(model, batch, NumberFormat::fp32).value == doctest::Approx(expected));
  // Frozen and nothing upstream: no backward.
  model.modules[0].trainable = Trainable::frozen;
  CHECK(model_flops(model, batch, NumberFormat::fp32).value == doctest::Approx(expected / 3));
}

TEST_CASE("nearest rank") {
  const std::vector<int> values{1, 2, 3, 4};
  CHECK(nearest_rank(values, 0.5) == 2);
  CHECK(nearest_rank(values, 0.51) == 3);
  CHECK(nearest_rank(values, 0.999) == 4);
  CHECK(nearest_rank(values, 0) == 1);
}
