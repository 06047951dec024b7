// What modules take from those that their edges join them with.
#include "shared/scenario_io/scenario_parts.h"

namespace polyphony {
namespace {

// What a diffusion module takes from the one that conditions it. The head of a language module
// makes no rows: its last block does.
void derive_conditioning(Model& model) {
  for (Edge& edge : model.edges) {
    Module& module = model.modules[edge.to.value];
    if (module.kind != ModuleKind::diffusion) continue;
    const Module& source = model.modules[edge.from.value];
    module.condition = output_width(source);
    if (edge.from_layer < 0 && source.kind == ModuleKind::language) edge.from_layer = source.layers;
  }
}

// Patches are joined in squares, "2x2"; frames in runs, 2.
void check_merge(const JsonValue& projector, const Module& source) {
  if (!projector.has("merge")) return;
  const bool square = projector.at("merge").is_text();
  if (source.kind == ModuleKind::audio && square)
    projector.refuse_at("merge", "frames of audio are joined in runs, not in squares",
                        "write a number, such as 2");
  if (source.kind == ModuleKind::vision && !square)
    projector.refuse_at("merge", "patches of images are joined in squares",
                        "write a text, such as \"2x2\"");
}

// What a projector takes from its neighbours.
void derive_projectors(const JsonValue& value, Model& model) {
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    Module& module = model.modules[m];
    if (module.kind != ModuleKind::projector) continue;
    for (const Edge& edge : model.edges) {
      if (edge.from == ModuleId(m)) module.projector_out = model.modules[edge.to.value].hidden;
      if (edge.to != ModuleId(m)) continue;
      const Module& source = model.modules[edge.from.value];
      check_merge(value.at(module.name), source);
      module.source = source.kind;
      module.projector_in = merged_rows(module) * output_width(source);
    }
    // Two layers of the language model's width. Source: LLaVA-1.5, arXiv 2310.03744; InternVL's
    // mlp1.
    if (module.projector_hidden == kSizeNotSaid) module.projector_hidden = module.projector_out;
  }
}

}  // namespace

void take_from_neighbours(const JsonValue& value, Model& model) {
  derive_projectors(value, model);
  derive_conditioning(model);
}

}  // namespace polyphony
