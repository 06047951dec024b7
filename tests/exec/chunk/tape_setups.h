// Chunks of every kind of layer, with every choice of what is trained and recomputed, for
// tests/exec/chunk/tape_test.cpp.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "shared/chunk/expand.h"
#include "tests/exec/support/sparse_layer.h"
#include "tests/exec/support/tiny_diffusion.h"
#include "tests/exec/support/variants.h"

namespace polyphony::exec::testing {

struct Setup {
  std::string name;
  Module module;
  LayerRange layers;
  WorkInput input;
  WorkSize size;
  std::vector<std::array<std::int64_t, 2>> inputs;  // rows (over all ranks) and width
  ChunkOptions options = {};
  ChunkContext context = {};
};

// Returns the setups with every choice of what is trained and recomputed, in one number format.
inline std::vector<Setup> spread(const std::vector<Setup>& setups, torch::Dtype dtype) {
  std::vector<Setup> all;
  for (Setup setup : setups) {
    setup.options.dtype = dtype;
    setup.context.precision = dtype == torch::kFloat64   ? NumberFormat::fp64
                              : dtype == torch::kFloat32 ? NumberFormat::fp32
                                                         : NumberFormat::bf16;
    setup.context.input_grad = setup.options.input_grad;
    for (const Trainable trainable : {Trainable::full, Trainable::frozen, Trainable::lora}) {
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        if (trainable == Trainable::frozen && !setup.options.input_grad) continue;  // no backward
        setup.module.trainable = trainable;
        if (trainable == Trainable::lora) setup.module.lora_rank = 3, setup.module.lora_alpha = 4;
        setup.options.trainable = setup.context.weight_grad = trainable != Trainable::frozen;
        setup.options.recompute = setup.context.recompute = recompute;
        all.push_back(setup);
        all.back().name += std::string(", ") + polyphony::name(trainable) + ", recompute " +
                           polyphony::name(recompute);
      }
    }
  }
  return all;
}

inline std::vector<Setup> dense_setups(const TestWork& work) {
  const std::int64_t rows = work.language.tokens, patches = work.vision.tokens;
  const Module language = tiny_language(), vision = tiny_vision();
  Module normed = language, classes = vision, windows = vision, merged = tiny_projector(),
         linear = tiny_projector(), plain = language;
  normed.qk_norm = normed.qkv_bias = true;
  classes.class_token = classes.gated = classes.input_norm = true;
  classes.norm = Norm::rms;
  windows.window = 3;
  windows.rotary = true;
  windows.final_norm = false;
  merged.merge = 1;
  merged.projector_in = 12;
  linear.projector_hidden = 0;
  plain.gated = false;
  plain.norm = Norm::layer;
  std::vector<Setup> list = {
      {"decoder block", language, {1, 2}, work.input, work.language, {{rows, 16}}},
      {"decoder blocks", language, {1, 3}, work.input, work.language, {{rows, 16}}},
      {"token embedding", language, {0, 1}, work.input, work.language, {{patches / 4, 16}}},
      {"language head", language, {3, 4}, work.input, work.language, {{rows, 16}}},
      {"language module", language, {0, 4}, work.input, work.language, {{patches / 4, 16}}},
      {"norms of heads", normed, {1, 3}, work.input, work.language, {{rows, 16}}},
      {"decoder block, not gated", plain, {1, 4}, work.input, work.language, {{rows, 16}}},
      {"encoder block", vision, {1, 2}, work.input, work.vision, {{patches, 12}}},
      {"patch embedding", vision, {0, 1}, work.input, work.vision, {}},
      {"encoder norm", vision, {3, 4}, work.input, work.vision, {{patches, 12}}},
      {"vision module", vision, {0, 4}, work.input, work.vision, {}},
      {"vision module, class tokens", classes, {0, 4}, work.input, work.vision, {}},
      {"encoder blocks in windows", windows, {1, 3}, work.input, work.vision, {{patches, 12}}},
      {"projector", tiny_projector(), {0, 1}, work.input, work.projector, {{patches, 12}}},
      {"linear projector", linear, {0, 1}, work.input, work.projector, {{patches, 12}}},
  };
  for (const int query_rank : {12, 0}) {
    Module latent = language;
    make_latent(latent, query_rank);
    const std::string name = "latent attention, query rank " + std::to_string(query_rank);
    list.push_back({name, latent, {1, 2}, work.input, work.language, {{rows, 16}}});
    list.push_back(
        {name + ", module", latent, {0, 4}, work.input, work.language, {{patches / 4, 16}}});
  }
  Module sliding = language, linear_rule = language, convolution = language;
  make_sliding(sliding);
  sliding.layers = 3;
  make_linear(linear_rule);
  make_convolution(convolution);
  Module gated = language;
  make_gated(gated);
  Module scaled = vision;
  scaled.layer_scale = 0.5;
  list.push_back(
      {"encoder blocks, layer scales", scaled, {1, 3}, work.input, work.vision, {{patches, 12}}});
  Module gelu = language;
  gelu.activation = Activation::gelu;
  list.push_back({"gates of gelu", gelu, {1, 2}, work.input, work.language, {{rows, 16}}});
  list.push_back({"gates of heads", gated, {1, 3}, work.input, work.language, {{rows, 16}}});
  list.push_back({"windows over rows", sliding, {1, 4}, work.input, work.language, {{rows, 16}}});
  list.push_back({"delta rule", linear_rule, {1, 2}, work.input, work.language, {{rows, 16}}});
  list.push_back(
      {"delta rule and attention", linear_rule, {1, 3}, work.input, work.language, {{rows, 16}}});
  list.push_back(
      {"short convolution", convolution, {1, 2}, work.input, work.language, {{rows, 16}}});
  list.push_back({"short convolution and attention",
                  convolution,
                  {1, 3},
                  work.input,
                  work.language,
                  {{rows, 16}}});
  WorkSize unmerged = work.projector;
  unmerged.tokens = patches;
  list.push_back(
      {"projector of single rows", merged, {0, 1}, work.input, unmerged, {{patches, 12}}});
  for (Setup& setup : list)
    if (setup.inputs.empty()) setup.options.input_grad = false;
  return list;
}

inline std::vector<Setup> sparse_setups(const TestWork& work) {
  Module shared = sparse_language(), level = sparse_language();
  shared.shared_ffn = 8;
  level.balance_weight = 0;
  Module gated = shared, routed = shared, biased = sparse_language();
  gated.shared_gate = true;
  route_by_sigmoids(routed);
  bias_experts(biased);
  const std::int64_t rows = work.language.tokens;
  return {{"experts", sparse_language(), {1, 2}, work.input, work.language, {{rows, 16}}},
          {"experts, a shared one", shared, {1, 3}, work.input, work.language, {{rows, 16}}},
          {"experts, a gated shared one", gated, {1, 3}, work.input, work.language, {{rows, 16}}},
          {"experts by sigmoids", routed, {1, 3}, work.input, work.language, {{rows, 16}}},
          {"experts, biases", biased, {1, 3}, work.input, work.language, {{rows, 16}}},
          {"experts, no balance", level, {1, 2}, work.input, work.language, {{rows, 16}}}};
}

inline std::vector<Setup> flow_setups(torch::Dtype dtype) {
  std::vector<Setup> list;
  for (const std::vector<FlowItem>& items :
       {std::vector<FlowItem>{{16, 5}}, std::vector<FlowItem>{{16, 5}, {6, 3}, {9, 4}}}) {
    for (const int condition : {14, 0}) {
      const Module module = tiny_diffusion(condition);
      const FlowWork work = flow_work(module, items, dtype);
      const auto add = [&](const char* name, LayerRange layers) {
        std::vector<std::array<std::int64_t, 2>> inputs;
        if (layers.begin > 0) inputs.push_back({work.size.tokens, module.hidden});
        if (condition > 0) inputs.push_back({work.size.condition, condition});
        list.push_back({std::string(name) + (condition > 0 ? "" : ", no condition") + ", items " +
                            std::to_string(items.size()),
                        module, layers, work.input, work.size, inputs});
        list.back().options.input_grad = !inputs.empty();
      };
      add("latent embedding", {0, 1});
      add("diffusion block", {1, 2});
      add("diffusion blocks", {1, 3});
      add("diffusion head", {4, 5});
      add("diffusion module", {0, 5});
    }
  }
  return list;
}

inline std::vector<Setup> audio_setups(torch::Dtype dtype) {
  WorkInput input;
  input.audio_lengths = {12, 4, 6};
  input.frames = torch::randn({44, 5}, dtype);
  const WorkSize size{.tokens = 22, .sequences = 3};
  std::vector<Setup> list = {
      {"audio embedding", tiny_audio(), {0, 1}, input, size, {}},
      {"audio module", tiny_audio(), {0, 4}, input, size, {}},
      {"audio projector", audio_projector(), {0, 1}, input, {.tokens = 11}, {{22, 12}}}};
  for (Setup& setup : list)
    if (setup.inputs.empty()) setup.options.input_grad = false;
  return list;
}

inline std::vector<Setup> all_setups(torch::Dtype dtype) {
  const TestWork work = uneven_work(dtype);
  std::vector<Setup> all;
  for (const std::vector<Setup>& list :
       {dense_setups(work), sparse_setups(work), flow_setups(dtype), audio_setups(dtype)})
    all.insert(all.end(), list.begin(), list.end());
  return spread(all, dtype);
}

}  // namespace polyphony::exec::testing
