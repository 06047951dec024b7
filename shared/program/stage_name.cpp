#include "shared/program/stage_name.h"

#include <set>

namespace polyphony {

std::string stage_name(const Program& program, Rank rank) {
  std::string text;
  std::set<std::string> seen;
  for (const ParamGroup& group : program.params) {
    const Module& module = program.model.modules[group.module.value];
    if (group.rank != rank || module.kind == ModuleKind::projector) continue;
    const ModuleLayout& grid = program.layout.modules[group.module.value];
    const int stage =
        (static_cast<int>(rank.value) - grid.first_rank) / (grid.tp * grid.cp * grid.dp());
    const std::string part = module.name + " stage " + std::to_string(stage);
    if (seen.insert(part).second) text += (text.empty() ? "" : " + ") + part;
  }
  return text;
}

}  // namespace polyphony
