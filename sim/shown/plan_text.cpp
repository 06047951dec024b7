#include "sim/shown/plan_text.h"

#include <algorithm>

#include "shared/text/figure_text.h"
#include "sim/console/console.h"
#include "sim/shown/sweep_text.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

std::string blocks_text(const std::vector<int>& blocks) {
  std::string text;
  for (const int count : blocks) text += (text.empty() ? "" : ",") + std::to_string(count);
  return text;
}

// Of virtual stages a rank has several, and its time is that of all of them.
std::string slowest(const PlannedSplit& split) { return split.exact ? "stage" : "rank"; }

std::string too_much(Bytes memory, Bytes device) {
  return device.value > 0 && memory > device ? " (too much)" : "";
}

}  // namespace

std::string memory_beside(Bytes memory, Bytes device) {
  return memory_of_device(memory, device) + too_much(memory, device);
}

std::string joint_text(const JointAnswer& answer) {
  const Model& model = answer.scenario->model;
  const Bytes device = answer.scenario->cluster.device.memory;
  Table table({"balance", "module", "stages", "blocks a stage", "slowest\nstage", "step",
               device.value > 0 ? "memory of\n" + bytes_text(device) : "memory"});
  std::string refused;
  for (const JointRow& row : answer.rows) {
    const bool legal = row.refused.empty();
    std::string balance = name(row.split.layout.balance);
    if (!legal) refused += paragraph("The " + balance + " layout is not legal: " + row.refused);
    std::string step = legal ? seconds_text(row.step) : "-";
    std::string memory = legal ? bytes_text(row.memory) + too_much(row.memory, device) : "-";
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
      if (grid_owner(model, ModuleId(m)) != ModuleId(m)) continue;
      const ModuleLayout& grid = row.split.layout.modules[m];
      table.add({balance, model.modules[m].name, std::to_string(grid.pp), blocks_text(grid.blocks),
                 seconds_text(row.split.bottleneck[m]), step, memory});
      balance = step = memory = "";
    }
  }
  return table.text(screen_columns()) +
         paragraph(
             "Balance: aware by forward and backward times, unaware by forward times alone, as if "
             "nothing were frozen. Slowest stage: its time per microbatch. Steps are estimates "
             "(longest path).") +
         refused;
}

std::string segments_text(const SegmentsAnswer& answer) {
  const Bytes device = answer.scenario->cluster.device.memory;
  Table table({"module", "runs on", "parts of a\nmicrobatch", "time", "share of the\nbest rate",
               "segments"});
  for (const SegmentRow& row : answer.rows)
    table.add({row.module, row.items > 0 ? counted(row.items, "item", "items") : "microbatches",
               row.items > 0 ? std::to_string(row.parts) : "1", seconds_text(row.latency),
               row.items > 0 ? percent_text(row.rate_share) : "-", std::to_string(row.segments)});
  return table.text(screen_columns()) +
         paragraph(layout_words(answer.scenario->model, answer.layout, answer.scenario->cluster)) +
         paragraph("Estimated step " + seconds_text(answer.step) + ", memory " +
                   memory_beside(answer.memory, device) +
                   "; the scenario's own layout: " + seconds_text(answer.given_step) + ", " +
                   memory_beside(answer.given_memory, device) + ".");
}

std::string stages_text(const PlanAnswer& answer) {
  // Two tables where one is too wide: what a stage holds, and what it costs.
  const Bytes device = answer.device_memory;
  const std::vector<std::string> numbers{
      "parameters\n/rank", "forward", "backward",
      device.value > 0 ? "memory of\n" + bytes_text(device) : "memory"};
  std::vector<std::string> header{"stage", "ranks"};
  Table held(header), costs({"stage", numbers[0], numbers[1], numbers[2], numbers[3]});
  header.insert(header.end(), numbers.begin(), numbers.end());
  Table all(header);
  std::vector<std::string> words;
  for (const PlannedStage& s : answer.stages) {
    const std::vector<std::string> cost{count_text(s.parameters_per_rank), seconds_text(s.forward),
                                        seconds_text(s.backward),
                                        bytes_text(s.memory) + too_much(s.memory, device)};
    held.add({s.name, s.ranks});
    costs.add({s.name, cost[0], cost[1], cost[2], cost[3]});
    all.add({s.name, s.ranks, cost[0], cost[1], cost[2], cost[3]});
    words.push_back(s.words);
  }
  std::size_t widest = width_of("layers");
  for (const std::string& of_stage : words) widest = std::max(widest, width_of(of_stage));
  const std::string one = all.text();
  const std::size_t rule = one.find("--");
  const std::size_t left = one.find('\n', rule) - rule;
  const std::string text =
      left + 2 + widest <= screen_columns()
          ? all.text_with("layers", words, screen_columns())
          : held.text_with("layers", words, screen_columns()) + "\n" + costs.text(screen_columns());
  return text + paragraph(
                    "Forward and backward: of one mean microbatch. Memory: predicted peak of the "
                    "stage's fullest rank.");
}

std::string bottleneck_text(const PlannedSplit& split) {
  return std::string(split.exact ? "the slowest stage is " : "the slowest rank has ") +
         split.bottleneck + ": " + seconds_text(split.bottleneck_time) +
         " per microbatch, waiting for its messages included. The mean of all its ranks is " +
         seconds_text(split.mean) + ".";
}

std::vector<std::string> moves_columns() {
  return {"between stages", "one block moved to the earlier", "one block moved to the later"};
}

std::string moves_note(const PlannedSplit& split) {
  return "Values: time of the slowest " + slowest(split) + " after the move, and its change.";
}

std::string change_text(const OtherSplit& other, const PlannedSplit& split, Bytes device) {
  const double change = other.bottleneck_time.count() / split.bottleneck_time.count() - 1;
  return seconds_text(other.bottleneck_time) + " (" + signed_percent_text(change) + ")" +
         (device.value > 0 && other.memory > device ? ", does not fit" : "");
}

std::vector<std::string> other_splits(const PlannedSplit& split, Bytes device) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& what, const OtherSplit& other) {
    lines.push_back(what + ": " + blocks_text(other.blocks) + " blocks a stage; its slowest " +
                    slowest(split) + " takes " + change_text(other, split, device));
  };
  if (split.better) add("Split balanced by all costs", *split.better);
  if (split.next) add(split.exact ? "Next best split" : "Next best split found", *split.next);
  return lines;
}

std::string split_text(const PlannedSplit& split, Bytes device) {
  Table table(moves_columns());
  const auto cell = [&](const std::optional<OtherSplit>& other) {
    return other ? change_text(*other, split, device) : std::string("not possible");
  };
  for (std::size_t s = 0; s < split.boundaries.size(); ++s)
    table.add({std::to_string(s) + " and " + std::to_string(s + 1),
               cell(split.boundaries[s].earlier), cell(split.boundaries[s].later)});
  std::string text = paragraph(split.branch + ": " + bottleneck_text(split)) + "\n" +
                     table.text(screen_columns()) + paragraph(moves_note(split));
  for (const std::string& line : other_splits(split, device)) text += paragraph(line);
  return text;
}

std::string order_text(const SearchedOrder& order) {
  std::string text = "planner dip: " + std::to_string(order.filled) + " of " +
                     counted(order.works, "sub-microbatch", "sub-microbatches") +
                     " of encoders hold items";
  const auto forwards = [&](Recipe recipe) {
    return order.forwards[static_cast<std::size_t>(recipe)];
  };
  const int away = forwards(Recipe::offload);
  const int changed = forwards(Recipe::selective) + forwards(Recipe::full) + away;
  if (const int all = forwards(Recipe::none) + changed; changed > 0)
    text += "; of " + counted(all, "forward", "forwards") + " " +
            std::to_string(forwards(Recipe::none)) + " keep all activations, " +
            std::to_string(forwards(Recipe::selective)) + " recompute attention, " +
            std::to_string(forwards(Recipe::full)) + " recompute everything" +
            (away > 0 ? ", " + std::to_string(away) + " offload activations to the host" : "");
  text += "\nestimated step " + seconds_text(order.step) + ", without it " +
          seconds_text(order.unplanned) + (order.unplanned_fits ? "" : ", which does not fit") +
          (order.pays() ? "" : ": it does not pay, leave it out");
  if (order.believed > Seconds(0))
    text +=
        "; the order found is " + percent_text(order.gap()) + " above a lower bound of all orders";
  return text + "\n";
}

std::string work_text(const PlannedWork& work, int global_batch) {
  const auto spread = [](const PlannedWork::Spread& of) {
    return percent_text(of.planned) + " (" + percent_text(of.unplanned) +
           " in the order of the batch, at least " + percent_text(of.least) +
           " for any assignment of samples)";
  };
  std::string text =
      "planner " + work.planner + ": " + std::to_string(work.deferred) + " of " +
      std::to_string(work.samples) +
      " samples wait for the next microbatch; standard deviation of the microbatches' "
      "work: encoders " +
      spread(work.encoder) + ", language module " + spread(work.language) + "\n";
  text += "estimated step " + seconds_text(work.step) + ", without it " +
          seconds_text(work.unplanned) + (work.pays() ? "" : ": it does not pay, leave it out") +
          "\n";
  if (work.ranks.empty()) return text;
  const std::string split = "ranks of a replica by work";
  if (work.stable_batch == 0)
    return text + "warning: " + split + " differ from batch to batch, whatever the batch size\n";
  const bool enough = global_batch >= work.stable_batch;
  return text +
         (enough ? ""
                 : "warning: a global batch of " + std::to_string(global_batch) +
                       " is too small for one split to be right for all steps; ") +
         "from " + std::to_string(work.stable_batch) + " samples on " + split + " are " +
         blocks_text(work.stable_ranks) + "; the layout has " + blocks_text(work.ranks) + "\n";
}

}  // namespace polyphony::sim
