#include "shared/program/stage_name.h"

#include <algorithm>

namespace polyphony {
namespace {

std::string part_name(const Program& program, const ParamGroup& group) {
  const Module& module = program.model.modules[group.module.value];
  if (module.kind == ModuleKind::projector) return "";
  const ModuleLayout& grid = program.layout.modules[group.module.value];
  const int stage =
      (static_cast<int>(group.rank.value) - grid.first_rank) / (grid.tp * grid.cp * grid.dp());
  return module.name + " stage " + std::to_string(stage);
}

// Linear search suffices: a rank has few parts.
void add_part(const std::string& part, std::vector<std::string>& parts) {
  if (!part.empty() && std::find(parts.begin(), parts.end(), part) == parts.end())
    parts.push_back(part);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : " + ") + part;
  return text;
}

}  // namespace

std::string stage_name(const Program& program, Rank rank) {
  std::vector<std::string> parts;
  for (const ParamGroup& group : program.params)
    if (group.rank == rank) add_part(part_name(program, group), parts);
  return joined(parts);
}

std::vector<std::string> stage_names(const Program& program) {
  std::vector<std::vector<std::string>> parts(program.ranks);
  for (const ParamGroup& group : program.params)
    add_part(part_name(program, group), parts[group.rank.value]);
  std::vector<std::string> names;
  for (const std::vector<std::string>& of_rank : parts) names.push_back(joined(of_rank));
  return names;
}

}  // namespace polyphony
