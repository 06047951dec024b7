#include "shared/scenario_io/scenario_parts.h"

namespace polyphony {
namespace {

std::vector<StageCurves> read_stage_curves(const JsonValue& value) {
  std::vector<StageCurves> stages;
  for (std::size_t s = 0; s < value.size(); ++s) {
    const JsonValue numbers = value.at(s);
    StageCurves& stage = stages.emplace_back();
    std::size_t next = 0;
    for (WorkCurve* curve : {&stage.forward, &stage.input, &stage.weight, &stage.message,
                             &stage.kept, &stage.held, &stage.moved, &stage.copy})
      for (double* number : {&curve->square, &curve->linear, &curve->constant})
        if (next < numbers.size()) *number = numbers.at(next++).number();
  }
  return stages;
}

StageCosts read_stage_costs(const JsonValue& value) {
  StageCosts costs;
  for (const Recipe recipe :
       {Recipe::layout, Recipe::none, Recipe::selective, Recipe::full, Recipe::offload})
    if (value.has(name(recipe)))
      costs.ways.push_back({recipe, read_stage_curves(value.at(name(recipe)))});
  if (costs.ways.empty())
    value.refuse("stage_costs must have at least one of layout, none, selective, full and offload",
                 "add one, or remove \"stage_costs\"");
  for (const StageCosts::Way& way : costs.ways)
    if (way.stages.size() != costs.ways.front().stages.size())
      value.refuse_at(name(way.recipe),
                      std::string(name(way.recipe)) + " must have as many stages as " +
                          std::string(name(costs.ways.front().recipe)) + ", " +
                          std::to_string(costs.ways.front().stages.size()) + ", got " +
                          std::to_string(way.stages.size()),
                      "write one list of numbers for every stage of the module");
  if (value.has("room"))
    for (std::size_t r = 0; r < value.at("room").size(); ++r)
      costs.room.push_back(value.at("room").at(r).number());
  return costs;
}

}  // namespace

PlannerCosts read_planner_costs(const JsonValue& value, const Model& model, const Layout& layout) {
  PlannerCosts costs;
  for (const std::string& key : module_words(value)) {
    const JsonValue grid = value.at(key);
    ModuleCosts own;
    if (grid.has("item_cost")) {
      const JsonValue cost = grid.at("item_cost");
      own.item = ItemCost{cost.at(0).number(), cost.at(1).number(), cost.at(2).number()};
    }
    if (grid.has("stage_costs")) own.stages = read_stage_costs(grid.at("stage_costs"));
    if (own == ModuleCosts{}) continue;
    const bool chain = layout.placement == Placement::homogeneous;
    costs[chain ? ModuleId(model.modules.size() - 1) : module_named(value, key, model)] =
        std::move(own);
  }
  return costs;
}

}  // namespace polyphony
