#include "sim/step_answers/layout_change.h"

#include "shared/model/model.h"

namespace polyphony::sim {
namespace {

std::string text(int value) { return std::to_string(value); }
std::string text(bool value) { return value ? "on" : "off"; }
template <class Choice>
std::string text(Choice value) {
  return name(value);
}

std::string range_text(const std::vector<int>& range) {
  if (range.size() != 2) return "all blocks";
  return "blocks " + text(range[0]) + "-" + text(range[1] - 1);
}

std::string works_text(const Layout& layout) {
  return layout.encoder_microbatches == 0 ? "by default" : text(layout.encoder_microbatches);
}

// Returns a text such as "a block from stage 3 to stage 4".
std::string shift_text(const std::vector<int>& from, const std::vector<int>& to) {
  std::string less, more;
  int moved = 0;
  for (std::size_t s = 0; s < from.size(); ++s) {
    if (from[s] == to[s]) continue;
    std::string& list = from[s] > to[s] ? less : more;
    list += (list.empty() ? "" : ", ") + std::to_string(s);
    if (from[s] > to[s]) moved += from[s] - to[s];
  }
  return (moved == 1 ? "a block" : text(moved) + " blocks") + " from stage " + less + " to stage " +
         more;
}

class Words {
 public:
  template <class Value>
  void add(const std::string& what, const Value& from, const Value& to) {
    if (from != to) found.push_back(what + " " + text(from) + " -> " + text(to));
  }
  std::vector<std::string> found;
};

void add_recompute(const std::string& whose, const ModuleLayout& from, const ModuleLayout& to,
                   Words& words) {
  words.add(whose + "recompute", from.recompute, to.recompute);
  if (from.recompute_blocks != to.recompute_blocks && to.recompute != Recompute::none)
    words.found.push_back(whose + "recompute of " + range_text(from.recompute_blocks) + " -> " +
                          range_text(to.recompute_blocks));
  words.add(whose + "offload_activations", from.offload_activations, to.offload_activations);
}

void add_grid(const std::string& whose, bool experts, const ModuleLayout& from,
              const ModuleLayout& to, Words& words) {
  words.add(whose + "ranks", from.ranks, to.ranks);
  words.add(whose + "TP", from.tp, to.tp);
  words.add(whose + "sequence parallelism", from.sp, to.sp);
  words.add(whose + "TP chunks", from.tp_pieces, to.tp_pieces);
  words.add(whose + "CP", from.cp, to.cp);
  if (from.cp > 1 && to.cp > 1) words.add(whose + "tokens", from.tokens, to.tokens);
  if (from.cp > 1 && to.cp > 1)
    words.add(whose + "attention over CP", from.cp_attention, to.cp_attention);
  words.add(whose + "heads per gather", from.cp_heads, to.cp_heads);
  words.add(whose + "row split", from.row_split, to.row_split);
  if (experts) {
    words.add(whose + "EP", from.ep, to.ep);
    words.add(whose + "experts TP", from.experts_tp(), to.experts_tp());
  }
  words.add(whose + "PP", from.pp, to.pp);
  words.add(whose + "VPP", from.vpp, to.vpp);
  words.add(whose + "DP", from.dp(), to.dp());
  words.add(whose + "spread", from.spread, to.spread);
  words.add(whose + "ahead", from.ahead, to.ahead);
  words.add(whose + "shard", from.shard, to.shard);
  if (to.shard != Shard::none) {
    const auto over = [](const ModuleLayout& grid) {
      return grid.shard_ranks == 0 ? grid.dp() * grid.cp : grid.shard_ranks;
    };
    if (from.shard != Shard::none || to.shard_ranks != 0)
      words.add(whose + "shard ranks", over(from), over(to));
  }
}

}  // namespace

std::vector<std::string> changes(const Model& model, const Layout& from, const Layout& to) {
  Words words;
  words.add("placement", from.placement, to.placement);
  const bool one =
      from.placement == Placement::homogeneous && to.placement == Placement::homogeneous;
  const std::size_t language = language_module(model).value;
  for (std::size_t m = 0; m < from.modules.size(); ++m) {
    const ModuleLayout &was = from.modules[m], &is = to.modules[m];
    const std::string module = model.modules[m].name + " ";
    const std::string whose = one ? "" : module;
    const bool projector = model.modules[m].kind == ModuleKind::projector;
    if (!projector && (!one || m == language))
      add_grid(whose, model.modules[m].experts > 0, was, is, words);
    if (!projector) add_recompute(module, was, is, words);
    if (was.blocks != is.blocks && was.blocks.size() == is.blocks.size())
      words.found.push_back(whose + shift_text(was.blocks, is.blocks));
  }
  if (schedule_name(from) != std::string(schedule_name(to)))
    words.found.push_back(std::string("schedule ") + schedule_name(from) + " -> " +
                          schedule_name(to));
  words.add("microbatches", from.microbatches, to.microbatches);
  if (from.encoder_microbatches != to.encoder_microbatches)
    words.found.push_back("encoder microbatches " + works_text(from) + " -> " + works_text(to));
  words.add("encoder order", from.encoder_order, to.encoder_order);
  words.add("bridge", from.bridge, to.bridge);
  words.add("balance", from.balance, to.balance);
  words.add("planner", from.planner, to.planner);
  return words.found;
}

}  // namespace polyphony::sim
