#include <algorithm>

#include "shared/check/checks.h"
#include "shared/program/work.h"

namespace polyphony::checks {
namespace {

bool is_encoder(const Module& module) {
  return module.kind == ModuleKind::vision || module.kind == ModuleKind::audio;
}

Verdict check_edge(const Model& model, const Edge& edge) {
  const Module& from = model.modules[edge.from.value];
  const Module& to = model.modules[edge.to.value];
  const std::string subject = from.name + " into " + to.name + ": ";
  if (edge.from.value >= edge.to.value)
    return refuse(subject + "a module must be listed before the modules that it feeds");
  const auto stack = static_cast<int>(layers(from).size()),
             target = static_cast<int>(layers(to).size());
  if (edge.from_layer >= stack)
    return refuse(subject + "the edge leaves layer " + std::to_string(edge.from_layer) + ", but " +
                  from.name + " has " + std::to_string(stack) + " layers; the last is " +
                  std::to_string(stack - 1));
  if (edge.to_layer < 0 || edge.to_layer >= target)
    return refuse(subject + "the edge enters layer " + std::to_string(edge.to_layer) + ", but " +
                  to.name + " has " + std::to_string(target) + " layers; the last is " +
                  std::to_string(target - 1));
  switch (to.kind) {
    case ModuleKind::vision:
    case ModuleKind::audio:
      return refuse(subject + "an encoder starts from data; it cannot read another module");
    case ModuleKind::projector:
      if (!is_encoder(from)) return refuse(subject + "a projector must read an encoder");
      break;
    case ModuleKind::language:
      if (!is_encoder(from) && from.kind != ModuleKind::projector)
        return refuse(subject + "the language module can only read encoders and projectors");
      if (edge.from_layer >= 0 && from.kind != ModuleKind::projector)
        return refuse(subject + "an inner layer's output must go through a projector of its own");
      break;
    case ModuleKind::diffusion:
      if (from.kind != ModuleKind::language || edge.from_layer == stack - 1)
        return refuse(subject +
                      "a diffusion module must be conditioned by the language module's blocks");
      break;
  }
  return {};
}

int joined_by(const Module& module) {
  return module.kind == ModuleKind::projector ? merged_rows(module) : 1;
}

// Checks that the tokens of one modality have one source. A second edge into the first layer would
// write the same rows. Edges into later layers add to these rows, so they must produce as many.
Verdict check_sources(const Model& model) {
  for (const Modality modality : {Modality::image, Modality::audio}) {
    const Module* first = nullptr;
    bool enters = false;
    for (const Edge& edge : model.edges) {
      if (edge.to != language_module(model) || !takes(model, edge.from, modality)) continue;
      const Module& from = model.modules[edge.from.value];
      if (first && joined_by(from) != joined_by(*first))
        return refuse(from.name + " merges " + std::to_string(joined_by(from)) +
                      " rows into one token, " + first->name + " merges " +
                      std::to_string(joined_by(*first)) +
                      "; both produce the same tokens and must use the same merge");
      if (first && enters && edge.to_layer == 0)
        return refuse(from.name + " produces rows for the same tokens as " + first->name +
                      "; one of them must enter a later layer");
      first = &from;
      enters |= edge.to_layer == 0;
    }
    if (first && !enters)
      return refuse(first->name +
                    ": its rows are added to tokens that no module produces; one edge of " +
                    "its encoder must enter layer 0");
  }
  return {};
}

}  // namespace

Verdict check_model(const Model& model) {
  int languages = 0;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    const Module& module = model.modules[m];
    languages += module.kind == ModuleKind::language ? 1 : 0;
    if (module.class_token && module.window > 0)
      return refuse(module.name +
                    ": a class token belongs to no window; use a class token or windows, not both");
    if (module.mask != Mask::causal &&
        std::any_of(module.mixers.begin(), module.mixers.end(), [](Mixer mixer) {
          return mixer == Mixer::linear || mixer == Mixer::convolution;
        }))
      return refuse(module.name + ": linear attention and convolutions see all earlier rows, " +
                    "whatever the mask; leave out mask, or these mixers");
    if (module.key_value_rank > 0 && module.qk_norm)
      return refuse(module.name + ": latent attention does not support qk_norm; leave it out");
    if (module.rotary_dim > 0 && !module.rope_sections.empty())
      return refuse(module.name +
                    ": rope_sections divide whole heads and cannot be combined with rotary_dim; " +
                    "leave out one of them");
    if (module.key_value_rank > 0 && (module.rotary_dim < 2 || module.rotary_dim % 2 != 0 ||
                                      value_width(module) > module.head_dim + module.rotary_dim))
      return refuse(module.name + ": latent attention needs an even rotary_dim of at least 2, " +
                    "and values no wider than its keys");
    int inputs = 0, outputs = 0;
    for (const Edge& edge : model.edges) {
      inputs += edge.to == ModuleId(m) ? 1 : 0;
      outputs += edge.from == ModuleId(m) ? 1 : 0;
    }
    if (module.kind == ModuleKind::diffusion && inputs > 1)
      return refuse(module.name + " has " + std::to_string(inputs) +
                    " inputs; a diffusion module must have at most 1");
    if (module.kind == ModuleKind::projector && inputs != 1)
      return refuse(module.name + " has " + std::to_string(inputs) +
                    " inputs; a projector must have 1");
    if ((is_encoder(module) || module.kind == ModuleKind::projector) && outputs == 0)
      return refuse(module.name + ": no module reads its output");
  }
  if (languages != 1)
    return refuse("the model must have 1 language module (got " + std::to_string(languages) + ")");
  for (const Edge& edge : model.edges)
    if (Verdict verdict = check_edge(model, edge)) return verdict;
  return check_sources(model);
}

}  // namespace polyphony::checks
