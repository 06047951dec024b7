#include "sim/text/layout_words.h"

#include <algorithm>

#include "shared/text/figure_text.h"

namespace polyphony::sim {
namespace {

// Longer lists of blocks a stage are given by their least and most.
constexpr std::size_t kMostRuns = 6;

// "stages of 6, 4 times 8 and 2 blocks", "3 blocks a stage".
std::string split_words(const std::vector<int>& blocks) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < blocks.size();) {
    std::size_t end = i;
    while (end < blocks.size() && blocks[end] == blocks[i]) ++end;
    runs.push_back((end - i > 1 ? std::to_string(end - i) + " times " : "") +
                   std::to_string(blocks[i]));
    i = end;
  }
  if (runs.size() == 1) return counted(blocks[0], "block", "blocks") + " a stage";
  const auto [least, most] = std::minmax_element(blocks.begin(), blocks.end());
  if (runs.size() > kMostRuns)
    return "stages of " + std::to_string(*least) + " to " + std::to_string(*most) + " blocks";
  std::string text = "stages of ";
  for (std::size_t r = 0; r < runs.size(); ++r)
    text += (r == 0 ? "" : r + 1 == runs.size() ? " and " : ", ") + runs[r];
  return text + " blocks";
}

std::string recompute_words(const ModuleLayout& grid) {
  std::string layers;
  if (grid.recompute_blocks.size() == 2) {
    const int first = grid.recompute_blocks[0], last = grid.recompute_blocks[1] - 1;
    layers = first == last ? "layer " + std::to_string(first)
                           : "layers " + std::to_string(first) + "-" + std::to_string(last);
  }
  if (grid.recompute == Recompute::selective)
    return "recompute attention" + (layers.empty() ? "" : " of " + layers);
  return "recompute " + (layers.empty() ? "all layers" : layers);
}

// "CP4 (ring)": zigzag tokens and gathered keys and values, as Megatron-LM has them, go unsaid.
std::string context_words(const ModuleLayout& grid) {
  std::string how;
  const auto add = [&](const std::string& what) { how += (how.empty() ? "" : ", ") + what; };
  if (grid.cp_attention != ContextAttention::all_gather) add(name(grid.cp_attention));
  if (grid.tokens != TokenAssignment::zigzag && grid.tokens != TokenAssignment::contiguous)
    add(std::string(name(grid.tokens)) + " tokens");
  if (grid.cp_heads > 0)
    add(counted(grid.cp_heads, "key/value head", "key/value heads") + " at a time");
  return " CP" + std::to_string(grid.cp) + (how.empty() ? "" : " (" + how + ")");
}

// "ZeRO-1", "ZeRO-3 (FSDP) over 8 of 16 DP ranks".
std::string shard_words(const ModuleLayout& grid) {
  const int stage = static_cast<int>(grid.shard);  // ZeRO's: optimizer 1, gradients 2, full 3
  const int copies = grid.dp() * grid.cp;
  std::string text = "ZeRO-" + std::to_string(stage) + (grid.shard == Shard::full ? " (FSDP)" : "");
  if (grid.shard_ranks > 0 && grid.shard_ranks < copies)
    text += " over " + std::to_string(grid.shard_ranks) + " of " + std::to_string(copies) +
            (grid.cp > 1 ? " DP·CP ranks" : " DP ranks");
  return text;
}

// "TP2 SP CP2 PP4 VPP12 DP32, ZeRO-2, recompute layers 0-25".
std::string grid_words(const ModuleLayout& grid) {
  std::string text = "TP" + std::to_string(grid.tp) + (grid.sp ? " SP" : "");
  if (grid.cp > 1) text += context_words(grid);
  if (grid.ep > 1) text += " EP" + std::to_string(grid.ep);
  if (grid.expert_tp > 0 && grid.expert_tp != grid.tp)
    text += " (experts TP" + std::to_string(grid.expert_tp) + ")";
  if (grid.pp > 1) text += " PP" + std::to_string(grid.pp);
  if (grid.vpp > 1) text += " VPP" + std::to_string(grid.vpp);
  text += " DP" + std::to_string(grid.dp());
  const auto add = [&](const std::string& what) { text += ", " + what; };
  if (grid.shard != Shard::none) add(shard_words(grid));
  if (grid.recompute != Recompute::none) add(recompute_words(grid));
  if (grid.offload_activations) add("activations offloaded");
  if (grid.tp_pieces > 1) add("TP overlap in " + std::to_string(grid.tp_pieces) + " chunks");
  if (grid.row_split > 0) add("attention rows of " + std::to_string(grid.row_split));
  if (grid.spread == Spread::images) add("images distributed one by one");
  if (grid.spread == Spread::copied) add("images encoded on every CP rank");
  if (grid.ahead > 0) add(counted(grid.ahead, "forward", "forwards") + " ahead");
  if (!grid.blocks.empty()) add(split_words(grid.blocks));
  return text;
}

std::string schedule_words(const Layout& layout) {
  if (!layout.actions.empty()) return "own order of actions";
  switch (layout.schedule) {
    case ScheduleKind::gpipe:
      return "GPipe";
    case ScheduleKind::one_f_one_b:
      return "1F1B";
    case ScheduleKind::interleaved:
      return "interleaved 1F1B";
    case ScheduleKind::zero_bubble:
      return "zero-bubble";
    case ScheduleKind::zero_bubble_h2:
      return "ZB-H2";
    case ScheduleKind::zero_bubble_v:
      return "ZB-V";
    case ScheduleKind::dualpipe_v:
      return "DualPipe-V";
    case ScheduleKind::eager_one_f_one_b:
      return "eager 1F1B";
    case ScheduleKind::v_half:
      return "V-Half";
    case ScheduleKind::v_min:
      return "V-Min";
    case ScheduleKind::interleaved_zero_bubble:
      return "interleaved zero-bubble";
  }
  return "?";
}

bool of_one_module(const Model& model) {
  return std::count_if(model.modules.begin(), model.modules.end(), [](const Module& module) {
           return module.kind != ModuleKind::projector;
         }) == 1;
}

const char* meaning(Placement placement) {
  switch (placement) {
    case Placement::homogeneous:
      return "homogeneous: one grid for all modules, encoder layers in the first pipeline stages.";
    case Placement::colocated:
      return "colocated: all modules on the same GPUs, each with a grid of its own.";
    case Placement::non_colocated:
      return "non-colocated: each module on GPUs of its own.";
    case Placement::mixed:
      return "mixed: some modules share GPUs, others have GPUs of their own.";
  }
  return "";
}

}  // namespace

const char* rank_word(const Cluster& cluster) {
  return cluster.device.bf16 > cluster.device.fp32 ? "GPU" : "rank";
}

std::string ranks_word(const Cluster& cluster) { return rank_word(cluster) + std::string("s"); }

std::string layout_words(const Model& model, const Layout& layout, const std::string& ranks) {
  const std::size_t last = language_module(model).value;
  const bool one_grid = layout.placement == Placement::homogeneous;
  std::string text = of_one_module(model) ? "" : std::string(name(layout.placement)) + ": ";
  const char* between = "";
  for (std::size_t m = 0; m < layout.modules.size(); ++m) {
    if (model.modules[m].kind == ModuleKind::projector || (one_grid && m != last)) continue;
    text += between;
    if (!one_grid) text += model.modules[m].name + " ";
    if (layout.placement == Placement::non_colocated || layout.placement == Placement::mixed)
      text +=
          "on " + counted(layout.modules[m].ranks, ranks.substr(0, ranks.size() - 1), ranks) + " ";
    text += grid_words(layout.modules[m]);
    between = "; ";
  }
  const ModuleLayout &encoder = layout.modules.front(), &language = layout.modules[last];
  if (one_grid && last > 0 &&
      (encoder.recompute != language.recompute ||
       encoder.recompute_blocks != language.recompute_blocks))
    text += ", " + model.modules.front().name + ": " +
            (encoder.recompute == Recompute::none ? "no recomputation" : recompute_words(encoder));
  text += one_grid ? ", " : "; ";
  if (language.pp > 1 || !layout.actions.empty()) text += schedule_words(layout) + ", ";
  text += counted(layout.microbatches, "microbatch", "microbatches");
  if (layout.encoder_microbatches > 0)
    text +=
        ", " + counted(layout.encoder_microbatches, "encoder microbatch", "encoder microbatches");
  if (layout.encoder_order == EncoderOrder::phases) text += ", all encoder forwards first";
  if (layout.encoder_order == EncoderOrder::interleaved) text += ", encoder stages interleaved";
  if (layout.bridge == Bridge::leader) text += ", edges through the first TP rank";
  if (layout.planner != Planning::none) text += std::string(", planner ") + name(layout.planner);
  return text;
}

std::string placement_legend(const Model& model, const std::vector<Placement>& shown) {
  if (of_one_module(model)) return "";
  std::string text;
  for (const Placement placement :
       {Placement::homogeneous, Placement::colocated, Placement::non_colocated, Placement::mixed})
    if (std::find(shown.begin(), shown.end(), placement) != shown.end())
      text += (text.empty() ? "" : " ") + std::string(meaning(placement));
  return text;
}

}  // namespace polyphony::sim
