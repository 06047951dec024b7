#include "shared/search/layout_order.h"

#include "shared/model/layout_fields.h"

namespace polyphony {
namespace {

std::strong_ordering compare(const ModuleLayout& a, const ModuleLayout& b) {
  static const auto fields = in_order(grid_fields(), &GridField::simple);
  const auto stages = [](const ModuleLayout& grid) {
    return grid.tp * grid.cp * grid.pp * grid.vpp;
  };
  if (const auto order = stages(a) <=> stages(b); order != 0) return order;
  for (const GridField* field : fields)
    if (const auto order = field->compare(a, b); order != 0) return order;
  return std::strong_ordering::equal;
}

std::strong_ordering compare_modules(const Layout& a, const Layout& b) {
  if (const auto order = a.modules.size() <=> b.modules.size(); order != 0) return order;
  for (std::size_t m = a.modules.size(); m-- > 0;)
    if (const auto order = compare(a.modules[m], b.modules[m]); order != 0) return order;
  return std::strong_ordering::equal;
}

std::strong_ordering compare(const Layout& a, const Layout& b) {
  static const auto fields = in_order(layout_fields(), &LayoutField::simple);
  const auto unusual = [](const Layout& layout) { return layout.schedule != default_schedule(1); };
  if (const auto order = a.placement <=> b.placement; order != 0) return order;
  if (const auto order = unusual(a) <=> unusual(b); order != 0) return order;
  for (const bool placed : {true, false}) {  // fields without a place come after the modules
    for (const LayoutField* field : fields)
      if ((field->simple < kLast) == placed)
        if (const auto order = field->compare(a, b); order != 0) return order;
    if (!placed) break;
    if (const auto order = compare_modules(a, b); order != 0) return order;
  }
  return a.actions <=> b.actions;
}

}  // namespace

bool simpler(const Layout& a, const Layout& b) { return compare(a, b) < 0; }
bool simpler(const ModuleLayout& a, const ModuleLayout& b) { return compare(a, b) < 0; }

}  // namespace polyphony
