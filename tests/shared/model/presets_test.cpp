#include "shared/model/presets.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "shared/check/check.h"
#include "shared/chunk/parameters.h"

using namespace polyphony;

namespace {

// Counts attention, feed-forward and embedding matrices of a module from its dimensions alone.
//   block = 2·H·A·D (3 with a gate) + 2·H·K·D + g·H·F, g = 3 when gated, else 2; with E experts of
//   width X and a shared one of width S, F = E·X + S, and the router's E·H
//   latent attention: H·(Lq + Lk + R) + Lq·A(D + R) + Lk·A(D + Dv) + A·Dv·H (without Lq A(D + R)·H)
//   linear attention: H·(2(K + V)D + 2V) + V·D·H, plus the convolution's weights
//   short convolution: 4·H², plus the convolution's weights
//   embeddings V·H, twice unless tied
//   diffusion block: plus R·(256 + 6H), and for cross-attention 2·H·A·D + 2·W·A·D with W the
//   condition's width
double attention_matrices(const Module& m, AttentionKind kind) {
  const double hidden = m.hidden, heads = m.heads, head_dim = m.head_dim;
  switch (kind) {
    case AttentionKind::full:
    case AttentionKind::window:
      return hidden * head_dim * ((m.attention_gate ? 3 : 2) * heads + 2 * m.kv_heads);
    case AttentionKind::latent: {
      const double wide = heads * (head_dim + m.rotary_dim), values = heads * value_width(m);
      const double queries = m.query_rank > 0 ? m.query_rank * (hidden + wide) : hidden * wide;
      return queries + hidden * (m.key_value_rank + m.rotary_dim) +
             m.key_value_rank * (heads * head_dim + values) + hidden * values;
    }
    case AttentionKind::linear: {
      const double keys = m.linear_key_heads, values = m.linear_value_heads,
                   width = m.linear_head_dim;
      return hidden * (2 * (keys + values) * width + 2 * values + values * width) +
             (2 * keys + values) * width * m.linear_conv;
    }
    case AttentionKind::convolution:
      return hidden * (4 * hidden + m.short_conv);
  }
  return 0;
}

double feed_forward_matrices(const Module& m, FeedForwardKind kind) {
  const double matrices = m.gated ? 3.0 * m.hidden : 2.0 * m.hidden;
  if (kind == FeedForwardKind::dense) return matrices * m.ffn;
  return matrices * (static_cast<double>(m.experts) * m.expert_ffn + m.shared_ffn) +
         static_cast<double>(m.hidden) * m.experts;
}

double matrix_parameters(const Module& module) {
  const double hidden = module.hidden, head_dim = module.head_dim;
  double blocks = 0;
  for (int block = 0; block < module.layers; ++block) {
    const BlockKind kind = block_at(module, block);
    blocks += attention_matrices(module, kind.attention) +
              feed_forward_matrices(module, kind.feed_forward);
  }
  const double embeddings =
      module.kind == ModuleKind::language ? (module.tied ? 1 : 2) * hidden * module.vocab : 0;
  const double modulation = module.modulation * (kTimeFeatures + 6 * hidden);
  const double across =
      module.condition > 0 ? 2 * (hidden + module.condition) * head_dim * module.heads : 0;
  return blocks + module.layers * (modulation + across) + embeddings;
}

}  // namespace

TEST_CASE("matrix parameters by hand") {
  // Llama-3 70B: 80(2·8192·128·(64 + 8) + 3·8192·28672) + 2·128256·8192 = 80(150,994,944 +
  // 704,643,072) + 2,101,346,304
  const ModelPreset* preset = find_preset("llama-3.1-70b");
  REQUIRE(preset != nullptr);
  CHECK(matrix_parameters(preset->module) == 70'552'387'584.0);
}

TEST_CASE("LFM2's parameters by hand") {
  // H = 2048: convolutions 4·2048² + 3·2048, attention 2048·64·(2·32 + 2·8) + 2·64, feed-forwards
  // 3·2048·F, two norms per block and one at the end, the embedding 65536·2048 once.
  const std::int64_t convolution = 16'783'360, attention = 10'485'888, table = 134'217'728;
  CHECK(parameter_count(find_preset("lfm2-1.2b")->module) ==
        10 * convolution + 6 * attention + 16 * 50'331'648LL + 33 * 2048 + table);
  CHECK(parameter_count(find_preset("lfm2-2.6b")->module) ==
        22 * convolution + 8 * attention + 30 * 66'060'288LL + 61 * 2048 + table);
}

TEST_CASE("every preset agrees with the published parameter count") {
  std::set<std::string> names;
  int exact = 0;
  for (const ModelPreset& preset : model_presets()) {
    CAPTURE(preset.name);
    CHECK(names.insert(preset.name).second);
    CHECK_FALSE(preset.source.empty());
    CHECK(preset.count.tolerance <= 0.04);
    const std::int64_t count = parameter_count(preset.module) + preset.count.beyond;
    if (preset.count.tolerance == 0) {
      CHECK(count == preset.count.published);
      ++exact;
    } else {
      CHECK(std::abs(static_cast<double>(count) / static_cast<double>(preset.count.published) - 1) <
            preset.count.tolerance);
    }
  }
  CHECK(exact >= 25);
}

TEST_CASE("the parameter list has the matrices and less than 1 % more") {
  for (const ModelPreset& preset : model_presets()) {
    CAPTURE(preset.name);
    const double count = static_cast<double>(parameter_count(preset.module));
    const double matrices = matrix_parameters(preset.module);
    CHECK(count > matrices);
    CHECK(count < matrices * 1.01);  // norms, biases, patch and position embedding, convolutions
  }
}

TEST_CASE("the executor runs every preset") {
  for (const ModelPreset& preset : model_presets()) {
    CAPTURE(preset.name);
    Scenario scenario;
    scenario.model.modules = {preset.module};
    CHECK_FALSE(check_runnable(scenario, {}).has_value());
    scenario.training.precision = NumberFormat::fp8;
    CHECK(check_runnable(scenario, {}).has_value());
    scenario.training.precision = NumberFormat::bf16;
    scenario.training.fp8 = Fp8Scaling::rowwise;
    CHECK(check_runnable(scenario, {}).has_value() == (preset.module.experts > 0));
    Layout layout;
    layout.modules.resize(1);
    layout.modules[0].tp_pieces = 2;
    CHECK(check_runnable(scenario, layout).has_value());
  }
}

TEST_CASE("presets are found by kind and name") {
  CHECK(find_preset("llama-4") == nullptr);
  for (const std::string& name : preset_names(ModuleKind::vision))
    CHECK(find_preset(name)->module.kind == ModuleKind::vision);
  CHECK(preset_names(ModuleKind::vision).size() + preset_names(ModuleKind::audio).size() +
            preset_names(ModuleKind::language).size() +
            preset_names(ModuleKind::diffusion).size() ==
        model_presets().size());
}
