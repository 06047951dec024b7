// Models and scenarios with round dimensions, for closed forms.
#pragma once

#include "shared/hardware/devices.h"
#include "shared/scenario/scenario.h"

namespace polyphony::examples {

// 38 × (4·5120² + 2·5120·20480) = 11.95e9 weights in its blocks.
inline Module vision_12b() {
  Module module;
  module.name = "vision";
  module.kind = ModuleKind::vision;
  module.layers = 38;
  module.hidden = 5120;
  module.heads = module.kv_heads = 40;
  module.head_dim = 128;
  module.ffn = 20480;
  module.attention_bias = module.mlp_bias = true;
  module.norm = Norm::layer;
  module.image_size = 448;
  module.patch = 14;
  return module;
}

// merge 2 × 2: in 4 · 5120.
inline Module projector_12b_70b() {
  Module module;
  module.name = "projector";
  module.kind = ModuleKind::projector;
  module.merge = 2;
  module.projector_in = 20480;
  module.projector_hidden = module.projector_out = 8192;
  return module;
}

inline Module llama_70b() {
  Module module;
  module.name = "language";
  module.kind = ModuleKind::language;
  module.layers = 80;
  module.hidden = 8192;
  module.heads = 64;
  module.kv_heads = 8;
  module.head_dim = 128;
  module.ffn = 28672;
  module.gated = true;
  module.vocab = 128256;
  return module;
}

inline Model chain(Module vision, Module projector, Module language) {
  return {{std::move(vision), std::move(projector), std::move(language)},
          {{ModuleId(0), ModuleId(1), 0}, {ModuleId(1), ModuleId(2), 0}}};
}

inline Distribution always(double value) {
  return {.kind = Distribution::Kind::constant, .a = value};
}

// 64 nodes of 8 H100; 1024 samples of 8 images of 1024 patches (2048 positions) and 6144 text
// tokens: 8192 positions.
inline Scenario vlm_on_h100() {
  Scenario scenario;
  scenario.model = chain(vision_12b(), projector_12b_70b(), llama_70b());
  const ShippedDevice& h100 = *find_device("H100");
  scenario.cluster = {.device = h100.device,
                      .nodes = 64,
                      .ranks_per_node = 8,
                      .node_link = h100.node_link,
                      .fabric_link = h100.fabric_link,
                      .profile = default_profile("H100")};
  scenario.data = {.source = SyntheticData{always(8), always(6144), always(6144)},
                   .global_batch = 1024,
                   .sequence = 8192};
  scenario.training.precision = NumberFormat::bf16;
  return scenario;
}

// 8 and 4 heads, 4 and 6 blocks, so tp up to 4. Images of 16 patches.
inline Scenario small_on_cpu(int ranks, int global_batch) {
  Module vision = vision_12b(), projector = projector_12b_70b(), language = llama_70b();
  vision.layers = 4;
  vision.hidden = 64;
  vision.heads = vision.kv_heads = 8;
  vision.head_dim = 8;
  vision.ffn = 128;
  vision.image_size = 16;
  vision.patch = 4;
  projector.projector_in = 256;
  projector.projector_hidden = projector.projector_out = 96;
  language.layers = 6;
  language.hidden = 96;
  language.heads = 8;
  language.kv_heads = 4;
  language.head_dim = 12;
  language.ffn = 256;
  language.vocab = 512;
  Scenario scenario;
  scenario.model = chain(vision, projector, language);
  const ShippedDevice& core = *find_device("cpu-core");
  scenario.cluster = {.device = core.device,
                      .nodes = 1,
                      .ranks_per_node = ranks,
                      .node_link = core.node_link,
                      .fabric_link = core.fabric_link,
                      .profile = default_profile("cpu-core")};
  scenario.data = {.source = SyntheticData{always(1), always(8), always(2)},
                   .global_batch = global_batch};
  return scenario;
}

// A small search: tensor, pipeline and data parallelism, recomputation and optimizer sharding. All
// else is fixed, except placements and microbatches.
inline Search few_choices(std::size_t modules) {
  ModuleSearch each;
  each.cp = each.vpp = each.ep = {1};
  each.sp = {false};
  each.shard = {Shard::none, Shard::optimizer};
  each.recompute = {Recompute::none, Recompute::full};
  Search search;
  search.modules.assign(modules, each);
  for (std::size_t m = 0; m + 1 < modules; ++m) search.modules[m].pp = {1};
  search.schedule = {ScheduleKind::one_f_one_b};
  return search;
}

}  // namespace polyphony::examples
