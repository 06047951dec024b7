#include "shared/model/presets.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "shared/layers/parameters.h"

using namespace polyphony;

namespace {

// Attention, feed-forward and embedding matrices of a module, from its dimensions alone.
//   block = 2·H·A·D + 2·H·K·D + g·H·F, g = 3 when gated, else 2;  embeddings V·H, twice unless tied
//   with E experts of width X and one of width S that all tokens visit: F = E·X + S, and the router's E·H
//   diffusion block: and R·(256 + 6H), and across 2·H·A·D + 2·W·A·D, W the condition's width
double matrix_parameters(const Module& module) {
  const double hidden = module.hidden, head_dim = module.head_dim;
  const double attention = 2 * hidden * head_dim * (module.heads + module.kv_heads);
  const double width =
      module.experts == 0
          ? module.ffn
          : static_cast<double>(module.experts) * module.expert_ffn + module.shared_ffn;
  const double feed_forward = (module.gated ? 3 : 2) * hidden * width + hidden * module.experts;
  const double embeddings =
      module.kind == ModuleKind::language ? (module.tied ? 1 : 2) * hidden * module.vocab : 0;
  const double modulation = module.modulation * (kTimeFeatures + 6 * hidden);
  const double across =
      module.condition > 0 ? 2 * (hidden + module.condition) * head_dim * module.heads : 0;
  return module.layers * (attention + feed_forward + modulation + across) + embeddings;
}

}  // namespace

TEST_CASE("matrix parameters by hand") {
  // Llama-3 70B: 80(2·8192·128·(64 + 8) + 3·8192·28672) + 2·128256·8192 = 80(150,994,944 +
  // 704,643,072) + 2,101,346,304
  const ModelPreset* preset = find_preset("llama-3.1-70b");
  REQUIRE(preset != nullptr);
  CHECK(matrix_parameters(preset->module) == 70'552'387'584.0);
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

TEST_CASE("our parameter list has the matrices, and little more") {
  for (const ModelPreset& preset : model_presets()) {
    CAPTURE(preset.name);
    const double count = static_cast<double>(parameter_count(preset.module));
    const double matrices = matrix_parameters(preset.module);
    CHECK(count > matrices);
    CHECK(count < matrices * 1.01);  // norms, biases, patch and position embedding, convolutions
  }
}

TEST_CASE("presets by kind and name") {
  CHECK(find_preset("llama-4") == nullptr);
  for (const std::string& name : preset_names(ModuleKind::vision))
    CHECK(find_preset(name)->module.kind == ModuleKind::vision);
  CHECK(preset_names(ModuleKind::vision).size() + preset_names(ModuleKind::audio).size() +
            preset_names(ModuleKind::language).size() +
            preset_names(ModuleKind::diffusion).size() ==
        model_presets().size());
}
