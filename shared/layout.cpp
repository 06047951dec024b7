#include "shared/layout.h"

#include <algorithm>

namespace polyphony {

int world_size(const Layout& layout) {
  int ranks = 0;
  for (const ModuleLayout& module : layout.modules)
    ranks = std::max(ranks, module.first_rank + module.ranks);
  return ranks;
}

const char* name(Placement placement) {
  switch (placement) {
    case Placement::homogeneous:
      return "homogeneous";
    case Placement::colocated:
      return "colocated";
    case Placement::non_colocated:
      return "non-colocated";
  }
  return "?";
}

const char* name(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::gpipe:
      return "gpipe";
    case ScheduleKind::one_f_one_b:
      return "1f1b";
    case ScheduleKind::interleaved:
      return "interleaved";
    case ScheduleKind::zero_bubble:
      return "zero-bubble";
  }
  return "?";
}

const char* name(Shard shard) {
  switch (shard) {
    case Shard::none:
      return "none";
    case Shard::optimizer:
      return "optimizer";
    case Shard::gradients:
      return "gradients";
    case Shard::full:
      return "full";
  }
  return "?";
}

const char* name(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::full:
      return "full";
  }
  return "?";
}

std::string describe(const ModuleLayout& layout) {
  std::string text = "TP" + std::to_string(layout.tp);
  if (layout.cp > 1) text += " CP" + std::to_string(layout.cp);
  if (layout.ep > 1) text += " EP" + std::to_string(layout.ep);
  text += " PP" + std::to_string(layout.pp) + " DP" + std::to_string(layout.dp());
  if (layout.shard != Shard::none) text += std::string(" shard ") + name(layout.shard);
  if (layout.recompute != Recompute::none)
    text += std::string(" recompute ") + name(layout.recompute);
  return text;
}

}  // namespace polyphony
