#include "shared/model/layout_text.h"

namespace polyphony {

std::string describe(const Model& model, const Layout& layout) {
  const std::size_t last = language_module(model).value;
  const ModuleLayout& encoder = layout.modules.front();
  std::string text = name(layout.placement);
  const char* between = "  ";
  for (std::size_t m = 0; m < layout.modules.size(); ++m) {
    const Module& module = model.modules[m];
    const bool one_grid = layout.placement == Placement::homogeneous && m != last;
    if (module.kind == ModuleKind::projector || one_grid) continue;
    text += between + module.name + " " + describe(layout.modules[m]);
    between = " |  ";
  }
  text += std::string("  ") + name(layout.schedule) + " x" + std::to_string(layout.microbatches);
  if (layout.placement == Placement::homogeneous &&
      encoder.recompute != layout.modules[last].recompute)
    text += "  " + model.modules.front().name + " recompute " + name(encoder.recompute);
  if (layout.encoder_microbatches > 0)
    text += "  encoder x" + std::to_string(layout.encoder_microbatches);
  return text;
}

}  // namespace polyphony
