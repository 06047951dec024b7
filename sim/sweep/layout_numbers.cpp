#include "sim/sweep/layout_numbers.h"

#include <nlohmann/json.hpp>

namespace polyphony::sim {
namespace {

// Calls visit(number) for every scalar field of the layout, to read or to write it.
template <class Whole, class Visit>
void visit_numbers(Whole& layout, Visit visit) {
  visit(layout.placement);
  visit(layout.schedule);
  visit(layout.microbatches);
  visit(layout.encoder_microbatches);
  visit(layout.encoder_order);
  visit(layout.bridge);
  visit(layout.balance);
  visit(layout.planner);
  visit(layout.placements);
}
template <class Grid, class Visit>
void visit_grid(Grid& grid, Visit visit) {
  visit(grid.tp);
  visit(grid.cp);
  visit(grid.pp);
  visit(grid.vpp);
  visit(grid.ep);
  visit(grid.sp);
  visit(grid.tp_pieces);
  visit(grid.shard);
  visit(grid.shard_ranks);
  visit(grid.recompute);
  visit(grid.offload_activations);
  visit(grid.expert_tp);
  visit(grid.tokens);
  visit(grid.cp_attention);
  visit(grid.cp_heads);
  visit(grid.row_split);
  visit(grid.spread);
  visit(grid.first_rank);
  visit(grid.ranks);
  visit(grid.ahead);
  visit(grid.sub_microbatch);
}

}  // namespace

nlohmann::json layout_numbers(const Layout& layout) {
  nlohmann::json numbers = nlohmann::json::array();
  const auto write = [&](const auto& value) { numbers.push_back(static_cast<int>(value)); };
  visit_numbers(layout, write);
  for (const ModuleLayout& grid : layout.modules) {
    visit_grid(grid, write);
    numbers.push_back(grid.recompute_blocks);
    numbers.push_back(grid.blocks);
  }
  return numbers;
}

Layout layout_of(const nlohmann::json& numbers) {
  Layout layout;
  std::size_t next = 0;
  const auto read = [&]<class Value>(Value& value) {
    value = static_cast<Value>(numbers[next++].get<int>());
  };
  visit_numbers(layout, read);
  while (next < numbers.size()) {
    ModuleLayout& grid = layout.modules.emplace_back();
    visit_grid(grid, read);
    grid.recompute_blocks = numbers[next++].get<std::vector<int>>();
    grid.blocks = numbers[next++].get<std::vector<int>>();
  }
  return layout;
}

}  // namespace polyphony::sim
