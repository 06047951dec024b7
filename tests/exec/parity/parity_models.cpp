// The changes of the generated part of the parity matrix that affect only the language module, and
// published models.
#include "tests/exec/parity/parity.h"
#include "tests/exec/support/routed.h"
#include "tests/exec/support/scaled_down.h"
#include "tests/exec/support/tiny_model.h"

namespace polyphony::exec::testing {

// A context that was extended by YaRN, with a change that begins and ends inside the frequencies.
static void extend_by_yarn(Module& m) {
  m.rope_scaling = RopeScaling::yarn;
  m.rope_theta = 50;
  m.rope_factor = 4;
  m.rope_context = 40;
  m.rope_low_factor = 1;
  m.rope_high_factor = 5;
  m.rope_whole = false;
  m.rope_attention = 1.2;
}

const std::vector<ModelFeature>& model_features() {
  static const std::vector<ModelFeature> list = {
      {"time, row and column", 0, [](Module& m) { m.rope_sections = {1, 1, 1}; }},
      {"latent attention", 0,
       [](Module& m) {
         make_latent(m, 12);
         extend_by_yarn(m);
         m.score_factor = 1.3;
       }},
      {"latent attention, whole queries", 0, [](Module& m) { make_latent(m, 0); }},
      {"windows over rows, sinks", 0, make_sliding},
      {"images see each other", 0, [](Module& m) { m.mask = Mask::modality; }},
      {"delta rule", 0, make_linear},
      {"short convolution", 0, make_convolution},
      {"gates of heads, norms of what is added", 0, make_gated},
      {"a dense block before experts", 4,
       [](Module& m) {
         m.dense_blocks = 1;
         m.ffn = 12;
       }},
      {"a norm's epsilon beside the mean square", 0,
       [](Module& m) {
         m.norm_epsilon = 0.03;
         m.qk_norm = true;
       }},
      {"gates of gelu", 0, [](Module& m) { m.activation = Activation::gelu; }},
      {"experts by sigmoids, in groups", 8, route_by_sigmoids},
      {"a gated shared expert", 4, [](Module& m) { m.shared_gate = true; }},
      {"clamped gates and biases of experts", 4,
       [](Module& m) {
         bias_experts(m);
         extend_by_yarn(m);
       }},
  };
  return list;
}

std::vector<Case> published_cases() {
  std::vector<Case> cases;
  for (const char* name : {"deepseek-v3", "kimi-k2", "moonlight-16b-a3b", "gpt-oss-20b",
                           "gemma-3-4b", "qwen3-next-80b-a3b"}) {
    const Module model = scaled_down(name);
    for (Case c : model_layouts(model.experts > 0, model.tied)) {
      c.name = std::string(name) + ": " + c.name;
      c.variant = [model](Model& all) {
        Module& language = all.modules[language_module(all).value];
        Module mine = model;
        mine.trainable = language.trainable;
        mine.lora_rank = language.lora_rank;
        mine.lora_alpha = language.lora_alpha;
        language = mine;
      };
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

}  // namespace polyphony::exec::testing
