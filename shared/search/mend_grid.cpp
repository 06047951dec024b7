#include "shared/search/mend_grid.h"

#include <algorithm>

#include "shared/model/layout_fields.h"

namespace polyphony {

int divisor_below(int value, int most) {
  int d = std::max(1, std::min(value, most));
  while (value % d != 0) --d;
  return d;
}

void copy_grid(const ModuleLayout& from, ModuleLayout& to) {
  for (const GridField& field : grid_fields())
    if (field.shared) field.copy(from, to);
}

bool mend(ModuleLayout& grid) {
  if (grid.tp < 1 || grid.cp < 1 || grid.pp < 1 || grid.vpp < 1 || grid.ep < 1 || grid.ranks < 1 ||
      grid.ranks % (grid.tp * grid.cp * grid.pp) != 0)
    return false;
  const int stages = grid.pp * grid.vpp;
  if (static_cast<int>(grid.blocks.size()) != stages) grid.blocks.clear();
  if (grid.tp == 1) grid.sp = false, grid.tp_pieces = 1;
  if (!grid.sp && grid.expert_tp == 1) grid.expert_tp = 0;
  if (grid.cp == 1) grid.tokens = TokenAssignment::contiguous;
  if (grid.cp == 1) grid.cp_attention = ContextAttention::all_gather;
  if (!grid.gathers_keys()) grid.cp_heads = 0;
  if (grid.shard == Shard::none) grid.shard_ranks = 0;
  const int copies = grid.dp() * grid.cp;
  if (grid.shard_ranks > 0) grid.shard_ranks = divisor_below(copies, grid.shard_ranks);
  if (grid.recompute == Recompute::none) grid.recompute_blocks.clear();
  return true;
}

}  // namespace polyphony
