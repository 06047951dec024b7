#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

#include "shared/model/chain_grid.h"
#include "shared/model/layout_fields.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/schedule/action_text.h"

namespace polyphony {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson numbers(const StageCurves& stage) {
  OrderedJson list = OrderedJson::array();
  for (const WorkCurve* curve :
       {&stage.forward, &stage.input, &stage.weight, &stage.message, &stage.kept, &stage.held})
    for (const double number : {curve->square, curve->linear, curve->constant})
      list.push_back(number);
  if (stage.moved == WorkCurve{} && stage.copy == WorkCurve{}) return list;
  for (const WorkCurve* curve : {&stage.moved, &stage.copy})
    for (const double number : {curve->square, curve->linear, curve->constant})
      list.push_back(number);
  return list;
}

OrderedJson stage_costs_json(const StageCosts& costs) {
  OrderedJson json;
  for (const StageCosts::Way& way : costs.ways)
    for (const StageCurves& stage : way.stages) json[name(way.recipe)].push_back(numbers(stage));
  if (!costs.room.empty()) json["room"] = costs.room;
  return json;
}

template <class Field, class Whole>
void put(const Field& field, const Whole& whole, OrderedJson& json) {
  field.visit(whole, [&]<class Value>(const Value& value) {
    if constexpr (std::is_enum_v<Value>)
      json[field.key] = name(value);
    else
      json[field.key] = value;
  });
}

// Adds the grid to `json`.
void add_grid(const ModuleLayout& grid, const ModuleCosts& costs, OrderedJson& json) {
  json["tp"] = grid.tp;  // the shape comes first
  json["pp"] = grid.pp;
  for (const GridField& field : grid_fields()) {
    if (field.key == std::string_view("sub_microbatch"))
      if (const auto& cost = costs.item)
        json["item_cost"] = {cost->square, cost->linear, cost->constant};
    if (field.about && field.is_written(grid)) put(field, grid, json);
  }
  if (costs.stages) json["stage_costs"] = stage_costs_json(*costs.stages);
}

OrderedJson grid_json(const ModuleLayout& grid, const ModuleCosts& costs) {
  OrderedJson json;
  json["ranks"] = {{"first", grid.first_rank}, {"count", grid.ranks}};
  add_grid(grid, costs, json);
  return json;
}

// Returns what the module states by itself in a homogeneous layout: the fields that differ from
// those of all modules, with the fields that are stated together with them.
OrderedJson own_json(const ModuleLayout& own, const ModuleLayout& all) {
  OrderedJson json;
  const std::vector<const GridField*> fields = in_order(grid_fields(), &GridField::own);
  for (const GridField* field : fields) {
    if (field->with) continue;
    std::vector<const GridField*> together{field};
    for (const GridField* other : fields)
      if (other->with && std::string_view(other->with) == field->key) together.push_back(other);
    if (std::all_of(together.begin(), together.end(),
                    [&](const GridField* one) { return one->same(own, all); }))
      continue;
    for (const GridField* one : together)
      if (one == field || one->is_written(own)) put(*one, own, json);
  }
  return json;
}

}  // namespace

OrderedJson json_value(const ModuleLayout& grid) {
  OrderedJson json;
  add_grid(grid, {}, json);
  return json;
}

OrderedJson json_value(const Layout& layout, const Model& model, const PlannerCosts& costs) {
  OrderedJson json;
  json["placement"] = name(layout.placement);
  json["schedule"] = name(layout.schedule);
  for (const Actions& actions : layout.actions) json["actions"].push_back(to_text(actions));
  for (const LayoutField& field : layout_fields())
    if (field.is_written(layout)) put(field, layout, json);
  if (layout.placement == Placement::homogeneous) {
    const ModuleLayout all = chain_grid(model, layout);
    json["all"] = grid_json(all, costs_of(costs, ModuleId(model.modules.size() - 1)));
    for (std::size_t m = 0; m + 1 < model.modules.size(); ++m) {
      if (model.modules[m].kind == ModuleKind::projector) continue;
      if (const OrderedJson own = own_json(layout.modules[m], all); !own.empty())
        json[model.modules[m].name] = own;
    }
    return json;
  }
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (model.modules[m].kind != ModuleKind::projector)
      json[model.modules[m].name] = grid_json(layout.modules[m], costs_of(costs, ModuleId(m)));
  return json;
}

std::string resolved_text(const Layout& layout, const Model& model, const PlannerCosts& costs) {
  return json_value(layout, model, costs).dump();
}

}  // namespace polyphony
