#include "shared/model/chain_grid.h"

#include "shared/model/layout_fields.h"

namespace polyphony {
namespace {

void take_language_part(ModuleLayout& to, const ModuleLayout& from) {
  for (const GridField& field : grid_fields())
    if (field.language) field.copy(from, to);
}

}  // namespace

std::vector<ModuleId> chain_modules(const Model& model) {
  std::vector<ModuleId> modules;
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (model.modules[m].kind != ModuleKind::projector) modules.emplace_back(m);
  return modules;
}

ModuleLayout chain_grid(const Model& model, const Layout& layout) {
  ModuleLayout grid = layout.modules.back();
  take_language_part(grid, layout.modules[language_module(model).value]);
  return grid;
}

void leave_to_language(const Model& model, Layout& layout) {
  const ModuleId language = language_module(model);
  for (std::size_t m = 0; m < layout.modules.size(); ++m)
    if (ModuleId(m) != language) take_language_part(layout.modules[m], ModuleLayout{});
}

}  // namespace polyphony
