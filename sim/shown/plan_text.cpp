#include "sim/shown/plan_text.h"

#include "shared/text/figure_text.h"
#include "sim/console/console.h"

namespace polyphony::sim {
namespace {

std::string blocks_text(const std::vector<int>& blocks) {
  std::string text;
  for (const int count : blocks) text += (text.empty() ? "" : ",") + std::to_string(count);
  return text;
}

}  // namespace

std::string memory_beside(Bytes memory, Bytes device) {
  return bytes_text(memory) + (device.value > 0 ? " of " + bytes_text(device) : "") +
         (device.value > 0 && memory > device ? "!" : "");
}

std::string joint_text(const JointAnswer& answer) {
  const Model& model = answer.scenario->model;
  const Bytes device = answer.scenario->cluster.device.memory;
  Table table({"balance", "module", "stages", "blocks", "dearest stage", "step", "memory"});
  std::string refused;
  for (const JointRow& row : answer.rows) {
    const bool legal = row.refused.empty();
    std::string balance = name(row.split.layout.balance);
    if (!legal) refused += "the " + balance + " layout is not legal: " + row.refused + "\n";
    std::string step = legal ? "~" + seconds_text(row.step) : "-";
    std::string memory = legal ? memory_beside(row.memory, device) : "-";
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
      if (grid_owner(model, ModuleId(m)) != ModuleId(m)) continue;
      const ModuleLayout& grid = row.split.layout.modules[m];
      table.add({balance, model.modules[m].name, std::to_string(grid.pp), blocks_text(grid.blocks),
                 seconds_text(row.split.dearest[m]), step, memory});
      balance = step = memory = "";
    }
  }
  return table.text() + refused;
}

std::string segments_text(const SegmentsAnswer& answer) {
  const Bytes device = answer.scenario->cluster.device.memory;
  Table table({"module", "works on", "of a microbatch", "takes", "of the best rate", "segments"});
  for (const SegmentRow& row : answer.rows)
    table.add({row.module, row.items > 0 ? counted(row.items, "item", "items") : "microbatches",
               row.items > 0 ? std::to_string(row.parts) : "1", seconds_text(row.latency),
               row.items > 0 ? percent_text(row.rate_share) : "-", std::to_string(row.segments)});
  return table.text() + describe(answer.scenario->model, answer.layout) + "\n" + "step ~" +
         seconds_text(answer.step) + ", " + memory_beside(answer.memory, device) +
         "; the scenario's own layout ~" + seconds_text(answer.given_step) + ", " +
         memory_beside(answer.given_memory, device) + "\n";
}

std::string stages_text(const PlanAnswer& answer) {
  Table table(
      {"stage", "ranks", "grid", "layers", "parameters/rank", "forward", "backward", "memory"});
  for (const PlannedStage& s : answer.stages)
    table.add({std::to_string(s.stage), s.ranks, s.grid, s.layers,
               count_text(s.parameters_per_rank), seconds_text(s.forward), seconds_text(s.backward),
               memory_beside(s.memory, answer.device_memory)});
  return table.text();
}

std::string dearest_text(const PlannedSplit& split) {
  return "the dearest rank has " + split.bottleneck + ", " + seconds_text(split.dearest) +
         " a microbatch with what it waits for; the mean rank has " + seconds_text(split.mean);
}

std::string change_text(const OtherSplit& other, const PlannedSplit& split, Bytes device) {
  const double change = other.dearest.count() / split.dearest.count() - 1;
  return seconds_text(other.dearest) + " (" + signed_percent_text(change) + ")" +
         (device.value > 0 && other.memory > device ? ", does not fit" : "");
}

std::vector<std::string> other_splits(const PlannedSplit& split, Bytes device) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& what, const OtherSplit& other) {
    lines.push_back(what + ": blocks " + blocks_text(other.blocks) + ", " +
                    change_text(other, split, device));
  };
  if (split.better) add("aware of all costs", *split.better);
  if (split.next) add(split.exact ? "next best" : "next best that was found", *split.next);
  return lines;
}

std::string split_text(const PlannedSplit& split, Bytes device) {
  Table table({"between stages", "a block to the first", "a block to the second"});
  const auto cell = [&](const std::optional<OtherSplit>& other) {
    return other ? change_text(*other, split, device) : std::string("has one block");
  };
  for (std::size_t s = 0; s < split.boundaries.size(); ++s)
    table.add({std::to_string(s) + " and " + std::to_string(s + 1),
               cell(split.boundaries[s].earlier), cell(split.boundaries[s].later)});
  std::string text = split.branch + ": " + dearest_text(split) + "\n" + table.text();
  for (const std::string& line : other_splits(split, device)) text += line + "\n";
  return text;
}

std::string order_text(const SearchedOrder& order) {
  std::string text = "planner dip: " + std::to_string(order.filled) + " of " +
                     counted(order.works, "sub-microbatch holds", "sub-microbatches hold") +
                     " items of encoders";
  const auto forwards = [&](Recipe recipe) {
    return order.forwards[static_cast<std::size_t>(recipe)];
  };
  const int away = forwards(Recipe::offload);
  const int changed = forwards(Recipe::selective) + forwards(Recipe::full) + away;
  if (const int all = forwards(Recipe::none) + changed; changed > 0)
    text += "; of " + counted(all, "forward", "forwards") + " " +
            std::to_string(forwards(Recipe::none)) + " keep all, " +
            std::to_string(forwards(Recipe::selective)) + " have attention recomputed, " +
            std::to_string(forwards(Recipe::full)) + " all" +
            (away > 0 ? ", " + std::to_string(away) + " wait in the host's memory" : "");
  text += "\nestimated step " + seconds_text(order.step) + ", without it " +
          seconds_text(order.unplanned) + (order.unplanned_fits ? "" : ", which does not fit") +
          (order.pays() ? "" : ": it does not pay, leave it out");
  if (order.believed > Seconds(0))
    text += "; the order found is " + percent_text(order.gap()) + " above what none goes below";
  return text + "\n";
}

std::string work_text(const PlannedWork& work, int global_batch) {
  const auto spread = [](const PlannedWork::Spread& of) {
    return percent_text(of.planned) + " (" + percent_text(of.unplanned) +
           " in the order of the batch, no dealing below " + percent_text(of.least) + ")";
  };
  std::string text = "planner " + work.planner + ": " + std::to_string(work.deferred) + " of " +
                     std::to_string(work.samples) +
                     " samples wait for the next microbatch; work of microbatches spreads, for "
                     "encoders, by " +
                     spread(work.encoder) + ", for the language module by " +
                     spread(work.language) + "\n";
  text += "estimated step " + seconds_text(work.step) + ", without it " +
          seconds_text(work.unplanned) + (work.pays() ? "" : ": it does not pay, leave it out") +
          "\n";
  if (work.ranks.empty()) return text;
  const std::string split = "ranks of a replica by work";
  if (work.stable_batch == 0)
    return text + "warning: " + split +
           " differ from batch to batch however many samples one has\n";
  const bool enough = global_batch >= work.stable_batch;
  return text +
         (enough ? ""
                 : "warning: a global batch of " + std::to_string(global_batch) +
                       " is too small for one split to be right for all steps; ") +
         "from " + std::to_string(work.stable_batch) + " samples on " + split + " are " +
         blocks_text(work.stable_ranks) + "; the layout has " + blocks_text(work.ranks) + "\n";
}

}  // namespace polyphony::sim
