#include "shared/model/layout.h"

#include <algorithm>

#include "shared/model/model.h"

namespace polyphony {

int world_size(const Layout& layout) {
  int ranks = 0;
  for (const ModuleLayout& module : layout.modules)
    ranks = std::max(ranks, module.first_rank + module.ranks);
  return ranks;
}

bool same_ranks(const ModuleLayout& a, const ModuleLayout& b) {
  return a.first_rank == b.first_rank && a.ranks == b.ranks;
}

const char* schedule_name(const Layout& layout) {
  return layout.actions.empty() ? name(layout.schedule) : "own actions";
}

std::optional<Recompute> recompute_of(Recipe recipe) {
  switch (recipe) {
    case Recipe::layout:
      return {};
    case Recipe::none:
    case Recipe::offload:
      return Recompute::none;
    case Recipe::selective:
      return Recompute::selective;
    case Recipe::full:
      return Recompute::full;
  }
  return {};
}

bool offloads(const ModuleLayout& layout, Recipe recipe) {
  return recipe == Recipe::offload || (recipe == Recipe::layout && layout.offload_activations);
}

namespace {

// Returns a list with runs of equal numbers shortened: "40,26x3".
std::string runs_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end < numbers.size() && numbers[end] == numbers[i]) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (end - i > 1) text += "x" + std::to_string(end - i);
    i = end;
  }
  return text;
}

std::string range_text(const ModuleLayout& layout) {
  const std::vector<int>& range = layout.recompute_blocks;
  return range.size() == 2 ? " of " + std::to_string(range[0]) + "-" + std::to_string(range[1] - 1)
                           : "";
}

const char* brief_name(Shard shard) {
  constexpr const char* kStages[] = {"", " Z1", " Z2", " Z3"};  // ZeRO stages
  return kStages[static_cast<std::size_t>(shard)];
}

}  // namespace

std::string describe(const ModuleLayout& layout) {
  std::string text = "TP" + std::to_string(layout.tp);
  if (layout.sp) text += " SP";
  if (layout.tp_pieces > 1) text += " in " + std::to_string(layout.tp_pieces) + " chunks";
  if (layout.cp > 1) text += " CP" + std::to_string(layout.cp);
  if (layout.cp > 1 && layout.tokens != TokenAssignment::contiguous)
    text += std::string(" ") + name(layout.tokens);
  if (layout.cp > 1 && layout.cp_attention != ContextAttention::all_gather)
    text += std::string(" ") + name(layout.cp_attention);
  if (layout.cp_heads > 0) text += " heads by " + std::to_string(layout.cp_heads);
  if (layout.row_split > 0) text += " rows of " + std::to_string(layout.row_split);
  if (layout.ep > 1) text += " EP" + std::to_string(layout.ep);
  if (layout.expert_tp > 0) text += " experts TP" + std::to_string(layout.expert_tp);
  text += " PP" + std::to_string(layout.pp);
  if (layout.vpp > 1) text += " VPP" + std::to_string(layout.vpp);
  text += " DP" + std::to_string(layout.dp());
  if (layout.spread == Spread::images) text += " by images";
  if (layout.spread == Spread::copied) text += " images copied";
  if (layout.shard != Shard::none) text += std::string(" shard ") + name(layout.shard);
  if (layout.shard_ranks > 0) text += " over " + std::to_string(layout.shard_ranks);
  if (layout.recompute != Recompute::none)
    text += std::string(" recompute ") + name(layout.recompute) + range_text(layout);
  if (layout.offload_activations) text += " offload activations";
  if (layout.ahead > 0) text += " ahead " + std::to_string(layout.ahead);
  if (!layout.blocks.empty()) text += " blocks " + runs_text(layout.blocks);
  return text;
}

std::string brief(const ModuleLayout& layout) {
  std::string text = "TP" + std::to_string(layout.tp) + (layout.sp ? "s" : "");
  if (layout.tp_pieces > 1) text += "/" + std::to_string(layout.tp_pieces);
  const auto add = [&](const char* what, int size) {
    if (size > 1) text += what + std::to_string(size);
  };
  add(" CP", layout.cp);
  if (layout.cp > 1 && layout.cp_attention != ContextAttention::all_gather)
    text += name(layout.cp_attention)[0];
  if (layout.cp_heads > 0) text += "h" + std::to_string(layout.cp_heads);
  add(" EP", layout.ep);
  add(" PP", layout.pp);
  add(" V", layout.vpp);
  text += brief_name(layout.shard);
  add("/", layout.shard_ranks);
  if (layout.recompute != Recompute::none)
    text += layout.recompute == Recompute::full ? " rc" : " sel";
  if (!layout.recompute_blocks.empty()) text += range_text(layout).substr(3);
  if (layout.offload_activations) text += " off";
  if (!layout.blocks.empty()) text += "*";
  if (layout.ahead > 0) text += "+" + std::to_string(layout.ahead);
  return text;
}

std::string brief(const Model& model, const Layout& layout) {
  const std::size_t last = language_module(model).value;
  const bool one = layout.placement == Placement::homogeneous;
  std::string text = name(layout.placement);
  const char* between = "  ";
  for (std::size_t m = 0; m < layout.modules.size(); ++m) {
    if (model.modules[m].kind == ModuleKind::projector || (one && m != last)) continue;
    text += between;
    if (m != last) text += std::to_string(layout.modules[m].ranks) + ":";
    text += brief(layout.modules[m]);
    between = " | ";
  }
  if (layout.modules[last].pp > 1) text += std::string(" ") + schedule_name(layout);
  text += " x" + std::to_string(layout.microbatches);
  if (layout.encoder_microbatches > 0) text += "/" + std::to_string(layout.encoder_microbatches);
  if (layout.encoder_order != EncoderOrder::in_turn)
    text += layout.encoder_order == EncoderOrder::phases ? " ph" : " il";
  if (layout.planner != Planning::none) text += std::string(" ") + name(layout.planner);
  return text;
}

std::string describe(const Model& model, const Layout& layout) {
  const std::size_t last = language_module(model).value;
  const ModuleLayout& encoder = layout.modules.front();
  std::string text = name(layout.placement);
  const char* between = "  ";
  for (std::size_t m = 0; m < layout.modules.size(); ++m) {
    const Module& module = model.modules[m];
    const bool one_grid = layout.placement == Placement::homogeneous && m != last;
    if (module.kind == ModuleKind::projector || one_grid) continue;
    text += between + module.name + " " + describe(layout.modules[m]);
    between = " |  ";
  }
  text += std::string("  ") + schedule_name(layout) + " x" + std::to_string(layout.microbatches);
  if (layout.placement == Placement::homogeneous &&
      (encoder.recompute != layout.modules[last].recompute ||
       encoder.recompute_blocks != layout.modules[last].recompute_blocks))
    text += "  " + model.modules.front().name + " recompute " + name(encoder.recompute) +
            range_text(encoder);
  if (layout.encoder_microbatches > 0)
    text += "  encoder x" + std::to_string(layout.encoder_microbatches);
  if (layout.encoder_order != EncoderOrder::in_turn)
    text += std::string("  encoder ") + name(layout.encoder_order);
  if (layout.bridge != Bridge::sharded) text += std::string("  bridge ") + name(layout.bridge);
  if (layout.balance != Balance::aware) text += std::string("  balance ") + name(layout.balance);
  if (layout.planner != Planning::none) text += std::string("  planner ") + name(layout.planner);
  return text;
}

}  // namespace polyphony
