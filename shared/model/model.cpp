#include "shared/model/model.h"

#include <algorithm>

#include "shared/error.h"

namespace polyphony {

std::vector<LayerKind> layers(const Module& module) {
  std::vector<LayerKind> stack;
  const auto blocks = static_cast<std::size_t>(module.layers);
  if (module.abstract.is) {
    stack.push_back(LayerKind::abstract_input);
    stack.insert(stack.end(), blocks, LayerKind::abstract_block);
    stack.push_back(LayerKind::abstract_output);
    return stack;
  }
  switch (module.kind) {
    case ModuleKind::vision:
      stack.push_back(LayerKind::patch_embedding);
      stack.insert(stack.end(), blocks, LayerKind::encoder_block);
      stack.push_back(LayerKind::encoder_norm);
      break;
    case ModuleKind::audio:
      stack.push_back(LayerKind::audio_embedding);
      stack.insert(stack.end(), blocks, LayerKind::encoder_block);
      stack.push_back(LayerKind::encoder_norm);
      break;
    case ModuleKind::language:
      stack.push_back(LayerKind::token_embedding);
      stack.insert(stack.end(), blocks, LayerKind::decoder_block);
      stack.push_back(LayerKind::language_head);
      break;
    case ModuleKind::projector:
      stack.push_back(module.projector_hidden == 0 ? LayerKind::projector_linear
                                                   : LayerKind::projector_mlp);
      break;
    case ModuleKind::diffusion:
      stack.push_back(LayerKind::latent_embedding);
      stack.insert(stack.end(), blocks, LayerKind::diffusion_block);
      stack.push_back(LayerKind::diffusion_head);
      break;
  }
  return stack;
}

BlockKind block_at(const Module& module, int block) {
  BlockKind kind;
  const std::vector<int>& whole = module.full_attention_blocks;
  Mixer mixer = Mixer::full;
  if (!module.mixers.empty())
    mixer = module.mixers[static_cast<std::size_t>(block) % module.mixers.size()];
  else if (module.window > 0 && std::find(whole.begin(), whole.end(), block) == whole.end())
    mixer = Mixer::window;
  switch (mixer) {
    case Mixer::full:
      kind.attention = module.key_value_rank > 0 ? AttentionKind::latent : AttentionKind::full;
      break;
    case Mixer::window:
      kind.attention = AttentionKind::window;
      break;
    case Mixer::linear:
      kind.attention = AttentionKind::linear;
      break;
    case Mixer::convolution:
      kind.attention = AttentionKind::convolution;
      break;
  }
  const bool sparse = module.experts > 0 && block >= module.dense_blocks;
  kind.feed_forward = sparse ? FeedForwardKind::experts : FeedForwardKind::dense;
  return kind;
}

int value_width(const Module& module) {
  return module.value_dim > 0 ? module.value_dim : module.head_dim;
}

int output_width(const Module& module) {
  return module.kind == ModuleKind::projector ? module.projector_out : module.hidden;
}

int latent_width(const Module& module) {
  return module.latent_channels * module.patch * module.patch;
}

int merged_rows(const Module& projector) {
  return projector.source == ModuleKind::audio ? projector.merge
                                               : projector.merge * projector.merge;
}

ModuleId language_module(const Model& model) {
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (model.modules[m].kind == ModuleKind::language) return ModuleId(m);
  POLYPHONY_CHECK(false, "the model has no language module");
  return {};
}

bool needs_input_grad(const Model& model, ModuleId module) {
  for (const Edge& edge : model.edges)
    if (edge.to == module && needs_backward(model, edge.from)) return true;
  return false;
}

bool needs_backward(const Model& model, ModuleId module) {
  return model.modules[module.value].trainable != Trainable::frozen ||
         needs_input_grad(model, module);
}

ModuleId grid_owner(const Model& model, ModuleId module) {
  for (std::size_t hops = 0;
       hops < model.modules.size() && model.modules[module.value].kind == ModuleKind::projector;
       ++hops)
    for (const Edge& edge : model.edges)
      if (edge.to == module) {
        module = edge.from;
        break;
      }
  return module;
}

}  // namespace polyphony
