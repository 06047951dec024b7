#include <nlohmann/json.hpp>

#include "shared/model/chain_grid.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/schedule/action_text.h"

namespace polyphony {
namespace {

using Json = nlohmann::ordered_json;

Json numbers(const StageCurves& stage) {
  Json list = Json::array();
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

Json stage_costs_json(const StageCosts& costs) {
  Json json;
  for (const StageCosts::Way& way : costs.ways)
    for (const StageCurves& stage : way.stages) json[name(way.recipe)].push_back(numbers(stage));
  if (!costs.room.empty()) json["room"] = costs.room;
  return json;
}

Json grid_json(const ModuleLayout& grid, const ModuleCosts& costs) {
  Json json;
  json["ranks"] = {{"first", grid.first_rank}, {"count", grid.ranks}};
  json["tp"] = grid.tp;
  json["pp"] = grid.pp;
  if (grid.cp != 1) json["cp"] = grid.cp;
  if (grid.vpp != 1) json["vpp"] = grid.vpp;
  if (grid.ep != 1) json["ep"] = grid.ep;
  if (grid.sp) json["sp"] = true;
  if (grid.tp_pieces != 1) json["tp_pieces"] = grid.tp_pieces;
  json["shard"] = name(grid.shard);
  if (grid.shard_ranks != 0) json["shard_ranks"] = grid.shard_ranks;
  json["recompute"] = name(grid.recompute);
  if (!grid.recompute_blocks.empty()) json["recompute_blocks"] = grid.recompute_blocks;
  if (grid.offload_activations) json["offload_activations"] = true;
  if (grid.expert_tp != 0) json["expert_tp"] = grid.expert_tp;
  if (grid.tokens != TokenAssignment::contiguous) json["tokens"] = name(grid.tokens);
  if (grid.cp_attention != ContextAttention::all_gather)
    json["cp_attention"] = name(grid.cp_attention);
  if (grid.cp_heads > 0) json["cp_heads"] = grid.cp_heads;
  if (grid.row_split > 0) json["row_split"] = grid.row_split;
  if (grid.spread != Spread::samples) json["spread"] = name(grid.spread);
  if (!grid.blocks.empty()) json["blocks"] = grid.blocks;
  if (grid.ahead > 0) json["ahead"] = grid.ahead;
  if (const auto& cost = costs.item)
    json["item_cost"] = {cost->square, cost->linear, cost->constant};
  if (grid.sub_microbatch != 1) json["sub_microbatch"] = grid.sub_microbatch;
  if (costs.stages) json["stage_costs"] = stage_costs_json(*costs.stages);
  return json;
}

Json layout_json(const Layout& layout, const Model& model, const PlannerCosts& costs) {
  Json json;
  json["placement"] = name(layout.placement);
  json["schedule"] = name(layout.schedule);
  for (const Actions& actions : layout.actions) json["actions"].push_back(to_text(actions));
  json["microbatches"] = layout.microbatches;
  if (layout.encoder_microbatches > 0) json["encoder_microbatches"] = layout.encoder_microbatches;
  if (layout.encoder_order != EncoderOrder::in_turn)
    json["encoder_order"] = name(layout.encoder_order);
  if (layout.bridge != Bridge::sharded) json["bridge"] = name(layout.bridge);
  if (layout.balance != Balance::aware) json["balance"] = name(layout.balance);
  if (layout.planner != Planning::none) json["planner"] = name(layout.planner);
  if (layout.planner == Planning::dip) json["placements"] = layout.placements;
  if (layout.placement == Placement::homogeneous) {
    const ModuleLayout all = chain_grid(model, layout);
    json["all"] = grid_json(all, costs_of(costs, ModuleId(model.modules.size() - 1)));
    for (std::size_t m = 0; m + 1 < model.modules.size(); ++m) {
      const ModuleLayout& own = layout.modules[m];
      if (model.modules[m].kind == ModuleKind::projector) continue;
      Json& part = json[model.modules[m].name];
      if (own.recompute != all.recompute || own.recompute_blocks != all.recompute_blocks) {
        part["recompute"] = name(own.recompute);
        if (!own.recompute_blocks.empty()) part["recompute_blocks"] = own.recompute_blocks;
      }
      if (own.offload_activations != all.offload_activations)
        part["offload_activations"] = own.offload_activations;
      if (own.shard != all.shard) part["shard"] = name(own.shard);
      if (part.empty()) json.erase(model.modules[m].name);
    }
    return json;
  }
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (model.modules[m].kind != ModuleKind::projector)
      json[model.modules[m].name] = grid_json(layout.modules[m], costs_of(costs, ModuleId(m)));
  return json;
}

}  // namespace

std::string resolved_text(const Layout& layout, const Model& model, const PlannerCosts& costs) {
  return layout_json(layout, model, costs).dump();
}

}  // namespace polyphony
