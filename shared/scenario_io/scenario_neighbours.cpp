// Derives the widths and layers of modules from the modules at the other end of their edges.
#include "shared/scenario_io/scenario_parts.h"

namespace polyphony {
namespace {

// Sets the width of a diffusion module's conditioning. It is read from the last block of a language
// module, whose head has no output rows.
void derive_conditioning(Model& model) {
  for (Edge& edge : model.edges) {
    Module& module = model.modules[edge.to.value];
    if (module.kind != ModuleKind::diffusion) continue;
    const Module& source = model.modules[edge.from.value];
    module.condition = output_width(source);
    if (edge.from_layer < 0 && source.kind == ModuleKind::language) edge.from_layer = source.layers;
  }
}

// Images merge squares of patches, "2x2", audio runs of frames, 2. A vision module that was read
// from a Hugging Face configuration has the merge of its model's projector.
void check_merge(const JsonValue& projector, const Module& source, Module& module) {
  if (!projector.has("merge")) {
    if (source.kind == ModuleKind::vision) module.merge = source.merge;
    return;
  }
  const bool square = projector.at("merge").is_text();
  if (source.kind == ModuleKind::audio && square)
    projector.refuse_at("merge", "of audio frames must be a number", "such as 2: two frames a row");
  if (source.kind == ModuleKind::vision && !square)
    projector.refuse_at("merge", "of image patches must be a text",
                        "such as \"2x2\" for squares of four patches, \"1x1\" for no merge");
  if (source.kind == ModuleKind::vision && source.merge > 1 && module.merge != source.merge) {
    const auto text = [](int side) { return std::to_string(side) + "x" + std::to_string(side); };
    projector.refuse_at("merge",
                        "\"" + text(module.merge) + "\" contradicts the configuration of " +
                            source.name + ", which merges " + text(source.merge) + " patches",
                        "write \"" + text(source.merge) + "\", or leave it out");
  }
}

// Sets the widths of projectors.
void derive_projectors(const JsonValue& value, Model& model) {
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    Module& module = model.modules[m];
    if (module.kind != ModuleKind::projector) continue;
    for (const Edge& edge : model.edges) {
      if (edge.from == ModuleId(m)) module.projector_out = model.modules[edge.to.value].hidden;
      if (edge.to != ModuleId(m)) continue;
      const Module& source = model.modules[edge.from.value];
      check_merge(value.at(module.name), source, module);
      module.source = source.kind;
      module.projector_in = merged_rows(module) * output_width(source);
    }
    // Default: a hidden layer of the language module's width. Source: LLaVA-1.5, arXiv 2310.03744;
    // InternVL's mlp1.
    if (module.projector_hidden == kSizeNotGiven) module.projector_hidden = module.projector_out;
    if (module.projector_hidden == kSizeOfInput) module.projector_hidden = module.projector_in;
  }
  for (Module& module : model.modules)
    if (module.kind == ModuleKind::vision) module.merge = Module{}.merge;
}

}  // namespace

void derive_from_neighbors(const JsonValue& value, Model& model) {
  derive_projectors(value, model);
  derive_conditioning(model);
}

}  // namespace polyphony
