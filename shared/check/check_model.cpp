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
  const std::string who = from.name + " into " + to.name + ": ";
  if (edge.from.value >= edge.to.value)
    return refuse(who + "modules must stand in the order of the data");
  const auto stack = static_cast<int>(layers(from).size()),
             target = static_cast<int>(layers(to).size());
  if (edge.from_layer >= stack)
    return refuse(who + from.name + " has " + std::to_string(stack) + " layers, the edge leaves " +
                  "layer " + std::to_string(edge.from_layer) + "; the last is " +
                  std::to_string(stack - 1));
  if (edge.to_layer < 0 || edge.to_layer >= target)
    return refuse(who + to.name + " has " + std::to_string(target) + " layers, the edge enters " +
                  "layer " + std::to_string(edge.to_layer) + "; the last is " +
                  std::to_string(target - 1));
  switch (to.kind) {
    case ModuleKind::vision:
    case ModuleKind::audio:
      return refuse(who + "an encoder starts from data; it cannot read another module");
    case ModuleKind::projector:
      if (!is_encoder(from)) return refuse(who + "a projector reads an encoder");
      break;
    case ModuleKind::language:
      if (!is_encoder(from) && from.kind != ModuleKind::projector)
        return refuse(who + "the language module reads encoders and projectors");
      if (edge.from_layer >= 0 && from.kind != ModuleKind::projector)
        return refuse(who + "an inner layer's output goes through a projector of its own");
      break;
    case ModuleKind::diffusion:
      if (from.kind != ModuleKind::language || edge.from_layer == stack - 1)
        return refuse(who + "a diffusion module is conditioned by the language module's blocks");
      break;
  }
  return {};
}

int joined_by(const Module& module) {
  return module.kind == ModuleKind::projector ? merged_rows(module) : 1;
}

// Tokens of one modality come from one place: a second edge into the first layer would write the
// same rows. Edges into later layers add to these rows, so they must make as many.
Verdict check_sources(const Model& model) {
  for (const Modality modality : {Modality::image, Modality::audio}) {
    const Module* first = nullptr;
    bool enters = false;
    for (const Edge& edge : model.edges) {
      if (edge.to != language_module(model) || !takes(model, edge.from, modality)) continue;
      const Module& from = model.modules[edge.from.value];
      if (first && joined_by(from) != joined_by(*first))
        return refuse(from.name + " joins " + std::to_string(joined_by(from)) + " rows into one, " +
                      first->name + " " + std::to_string(joined_by(*first)) +
                      "; both make the same tokens: use the same merge");
      if (first && enters && edge.to_layer == 0)
        return refuse(from.name + ": the rows it makes are those of " + first->name +
                      "; one of them must enter a later layer");
      first = &from;
      enters |= edge.to_layer == 0;
    }
    if (first && !enters)
      return refuse(first->name +
                    ": its rows are added to tokens that nothing makes; one edge of " +
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
      return refuse(module.name + ": a class token belongs to no window; use one or the other");
    if (module.mask != Mask::causal &&
        std::any_of(module.mixers.begin(), module.mixers.end(), [](Mixer mixer) {
          return mixer == Mixer::linear || mixer == Mixer::convolution;
        }))
      return refuse(module.name + ": a running state and a convolution see all rows before, " +
                    "whatever the mask; leave out mask, or these mixers");
    if (module.key_value_rank > 0 && module.qk_norm)
      return refuse(module.name + ": latent attention has no norms of heads");
    if (module.rotary_dim > 0 && !module.rope_sections.empty())
      return refuse(module.name +
                    ": rotary sections are those of whole heads; leave out rotary_dim " +
                    "or rope_sections");
    if (module.key_value_rank > 0 && (module.rotary_dim < 2 || module.rotary_dim % 2 != 0 ||
                                      value_width(module) > module.head_dim + module.rotary_dim))
      return refuse(module.name +
                    ": latent attention rotates an even number of its keys' numbers, " +
                    "and its values are no wider than its keys");
    int inputs = 0, outputs = 0;
    for (const Edge& edge : model.edges) {
      inputs += edge.to == ModuleId(m) ? 1 : 0;
      outputs += edge.from == ModuleId(m) ? 1 : 0;
    }
    if (module.kind == ModuleKind::diffusion && inputs > 1)
      return refuse(module.name + " has " + std::to_string(inputs) +
                    " inputs; a diffusion module has 1 at most");
    if (module.kind == ModuleKind::projector && inputs != 1)
      return refuse(module.name + " has " + std::to_string(inputs) + " inputs; a projector has 1");
    if ((is_encoder(module) || module.kind == ModuleKind::projector) && outputs == 0)
      return refuse(module.name + ": nothing reads what it makes");
  }
  if (languages != 1)
    return refuse("the model has " + std::to_string(languages) + " language modules; it needs 1");
  for (const Edge& edge : model.edges)
    if (Verdict verdict = check_edge(model, edge)) return verdict;
  return check_sources(model);
}

}  // namespace polyphony::checks
