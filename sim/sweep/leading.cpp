#include "sim/sweep/leading.h"

#include <set>

namespace polyphony::sim {
namespace {

std::vector<int> shape_of(const Model& model, const Layout& layout) {
  std::vector<int> shape{static_cast<int>(layout.placement)};
  for (const ModuleLayout& grid : layout.modules) shape.push_back(grid.ranks);
  const ModuleLayout& grid = layout.modules[language_module(model).value];
  shape.insert(shape.end(), {grid.tp, grid.cp, grid.pp, grid.vpp, grid.ep});
  return shape;
}

}  // namespace

std::vector<bool> leading_rows(const Sweep& sweep, const Model& model) {
  std::set<std::vector<int>> seen;
  std::vector<bool> leading;
  for (const Candidate& c : sweep.ranked)
    leading.push_back(seen.insert(shape_of(model, c.layout)).second);
  return leading;
}

}  // namespace polyphony::sim
