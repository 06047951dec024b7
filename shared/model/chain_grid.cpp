#include "shared/model/chain_grid.h"

namespace polyphony {
namespace {

void take_language_part(ModuleLayout& to, const ModuleLayout& from) {
  to.ep = from.ep;
  to.expert_tp = from.expert_tp;
  to.tokens = from.tokens;
  to.cp_attention = from.cp_attention;
  to.cp_heads = from.cp_heads;
  to.row_split = from.row_split;
}

}  // namespace

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
