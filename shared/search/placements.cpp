#include <algorithm>
#include <vector>

#include "shared/search/random_layout.h"

namespace polyphony {

std::vector<Placement> placements_of(const Model& model) {
  const auto owners =
      std::count_if(model.modules.begin(), model.modules.end(),
                    [](const Module& module) { return module.kind != ModuleKind::projector; });
  if (owners == 1) return {Placement::homogeneous};
  std::vector<Placement> placements{Placement::homogeneous, Placement::non_colocated,
                                    Placement::mixed};
  // A module that the language module feeds cannot be on its ranks.
  if (model.modules.back().kind == ModuleKind::language)
    placements.insert(placements.begin() + 1, Placement::colocated);
  return placements;
}

}  // namespace polyphony
