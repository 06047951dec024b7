// A small model with images and audio, and every variant of its dense layers.
#pragma once

#include <functional>
#include <vector>

#include "shared/scenario/scenario.h"
#include "tests/exec/support/tiny_model.h"

namespace polyphony::exec::testing {

inline Module tiny_audio() {
  Module m = tiny_vision();
  m.name = "audio";
  m.kind = ModuleKind::audio;
  m.image_size = m.patch = 0;
  m.mel_bins = 5;
  m.audio_tokens = 12;
  return m;
}
inline Module audio_projector() {
  Module m = tiny_projector();
  m.name = "audio_projector";
  m.source = ModuleKind::audio;
  m.projector_in = 2 * 12;
  return m;
}

// vision > projector > language < audio_projector < audio
inline Model tiny_model() {
  return {{tiny_vision(), tiny_projector(), tiny_audio(), audio_projector(), tiny_language()},
          {{ModuleId(0), ModuleId(1), 0, -1},
           {ModuleId(1), ModuleId(4), 0, -1},
           {ModuleId(2), ModuleId(3), 0, -1},
           {ModuleId(3), ModuleId(4), 0, -1}}};
}

struct Variant {
  const char* name;
  std::function<void(Module& vision, Module& audio, Module& language, Model&)> change;
};
inline const std::vector<Variant>& variants() {
  static const std::vector<Variant> list = {
      {"as they come", [](Module&, Module&, Module&, Model&) {}},
      {"biases on q, k and v",
       [](Module& vision, Module&, Module& language, Model&) {
         vision.attention_bias = false;
         vision.qkv_bias = language.qkv_bias = true;
       }},
      {"norms of heads", [](Module& vision, Module& audio, Module& language,
                            Model&) { vision.qk_norm = audio.qk_norm = language.qk_norm = true; }},
      {"feed-forwards exchanged, with biases",
       [](Module& vision, Module&, Module& language, Model&) {
         vision.gated = language.mlp_bias = true;
         language.gated = false;
       }},
      {"the other norms, no biases in the encoder",
       [](Module& vision, Module&, Module& language, Model&) {
         vision.norm = Norm::rms;
         language.norm = Norm::layer;
         vision.attention_bias = vision.mlp_bias = false;
         language.attention_bias = true;
       }},
      {"tied", [](Module&, Module&, Module& language, Model&) { language.tied = true; }},
      {"time, row and column",
       [](Module&, Module&, Module& language, Model&) { language.rope_sections = {1, 1, 1}; }},
      {"class token", [](Module& vision, Module&, Module&, Model&) { vision.class_token = true; }},
      {"a norm before the first block, none after the last",
       [](Module& vision, Module&, Module&, Model&) {
         vision.class_token = vision.input_norm = true;
         vision.final_norm = false;
       }},
      {"layer scales",
       [](Module& vision, Module& audio, Module&, Model&) {
         vision.layer_scale = 0.7;
         audio.layer_scale = 1.5;
       }},
      {"no norm after the last block",
       [](Module& vision, Module&, Module&, Model&) { vision.final_norm = false; }},
      {"rotary encoder, alternating axes",
       [](Module& vision, Module&, Module&, Model&) {
         vision.rotary = vision.alternating_axes = true;
       }},
      {"rotary encoder", [](Module& vision, Module&, Module&, Model&) { vision.rotary = true; }},
      {"rotary encoder, class token",
       [](Module& vision, Module&, Module&, Model&) { vision.rotary = vision.class_token = true; }},
      {"windows",
       [](Module& vision, Module&, Module&, Model&) {
         vision.window = 3;  // of 4 × 4 patches: 3 × 3, 3 × 1, 1 × 3, 1 × 1
         vision.full_attention_blocks = {1};
       }},
      {"linear projectors",
       [](Module&, Module&, Module&, Model& model) {
         model.modules[1].projector_hidden = model.modules[3].projector_hidden = 0;
       }},
      {"short convolutions",
       [](Module&, Module&, Module& language, Model&) { make_convolution(language); }},
      {"frozen encoders",
       [](Module& vision, Module& audio, Module& language, Model&) {
         vision.trainable = audio.trainable = Trainable::frozen;
         vision.layer_scale = 0.7;
         vision.class_token = language.tied = true;
       }},
      {"frozen language",
       [](Module& vision, Module&, Module& language, Model&) {
         vision.window = 2;
         language.trainable = Trainable::frozen;
         language.tied = language.qk_norm = language.qkv_bias = true;
       }},
      {"more ranks than key heads",
       [](Module&, Module&, Module& language, Model&) {
         language.kv_heads = 2;
         language.qk_norm = language.qkv_bias = true;
       }},
      {"low-rank updates",
       [](Module& vision, Module& audio, Module& language, Model&) {
         for (Module* module : {&vision, &audio, &language}) {
           module->trainable = Trainable::lora;
           module->lora_rank = 2;
           module->lora_alpha = 3;
           module->qk_norm = true;
         }
         vision.class_token = vision.gated = vision.input_norm = language.tied = true;
         vision.layer_scale = 0.7;
       }},
      {"all together",
       [](Module& vision, Module& audio, Module& language, Model& model) {
         vision.qk_norm = audio.qk_norm = language.qk_norm = true;
         vision.gated = vision.rotary = true;
         vision.norm = Norm::rms;
         vision.window = 2;
         vision.full_attention_blocks = {0};
         language.qkv_bias = language.tied = true;
         language.rope_sections = {2, 0, 1};
         model.modules[3].projector_hidden = 0;
       }},
  };
  return list;
}

inline Scenario scenario_of(const Variant& variant) {
  Scenario scenario;
  scenario.file = "variants";
  scenario.model = tiny_model();
  std::vector<Module>& modules = scenario.model.modules;
  variant.change(modules[0], modules[2], modules[4], scenario.model);
  scenario.training.seed = 3;
  scenario.training.clip_norm = 0;
  return scenario;
}

// Images of 16 and 4 patches, clips of 12, 4 and 6 tokens, in and out of order.
inline std::vector<Sample> samples() {
  const Item big{Modality::image, 16, 0}, small{Modality::image, 4, 0};
  const auto clip = [](std::int32_t tokens) { return Item{Modality::audio, tokens, 0}; };
  const auto text = [](std::int32_t tokens, std::int32_t labels) {
    return Item{Modality::text, tokens, labels};
  };
  return {{0, {big, text(5, 2)}},
          {1, {text(2, 0), clip(12), small, big, text(9, 3)}},
          {2, {text(3, 3)}},
          {3, {clip(4), clip(6), text(4, 1), big, text(2, 1)}}};
}

}  // namespace polyphony::exec::testing
