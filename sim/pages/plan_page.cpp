#include "sim/pages/plan_page.h"

#include <algorithm>
#include <sstream>

#include "shared/text/figure_text.h"
#include "sim/shown/plan_text.h"
#include "traces/report/report_parts.h"
#include "traces/report/svg_canvas.h"

namespace polyphony::sim {
namespace {

std::string name_of(const PlannedStage& stage) { return stage.name + ", ranks " + stage.ranks; }

traces::Figure times(const PlanAnswer& answer) {
  Seconds most{};
  for (const PlannedStage& stage : answer.stages)
    most = std::max(most, stage.forward + stage.backward);
  const auto [unit, second] = traces::time_unit(most.count());
  std::vector<traces::Bar> bars;
  for (const PlannedStage& stage : answer.stages)
    bars.push_back({name_of(stage),
                    seconds_text(stage.forward + stage.backward),
                    stage.words,
                    {stage.forward.count() / second, stage.backward.count() / second}});
  traces::ChartOptions options;
  options.x_label = "a mean microbatch, " + unit;
  return traces::figure(
      options,
      [&](const traces::ChartOptions& o) {
        return traces::bar_chart({{"forward", "forward"}, {"backward", "backward"}}, bars, o);
      },
      "What each pipeline stage computes, collectives inside it and recomputation included. Of "
      "virtual stages a rank has several.");
}

traces::Figure memories(const PlanAnswer& answer) {
  Bytes most = answer.device_memory;
  for (const PlannedStage& stage : answer.stages) most = std::max(most, stage.memory);
  const auto [unit, byte] = traces::bytes_unit(static_cast<double>(most.value));
  std::vector<traces::Bar> bars;
  for (const PlannedStage& stage : answer.stages) {
    const Bytes free = std::max(answer.device_memory - stage.memory, Bytes{});
    bars.push_back(
        {name_of(stage),
         memory_beside(stage.memory, answer.device_memory),
         stage.words,
         {static_cast<double>(stage.memory.value) / byte, static_cast<double>(free.value) / byte}});
  }
  traces::ChartOptions options;
  options.x_label = "memory of the worst rank, " + unit;
  return traces::figure(
      options,
      [&](const traces::ChartOptions& o) {
        return traces::bar_chart({{"optimizer", "used"}, {"wait tint", "free"}}, bars, o);
      },
      "Predicted peak of each stage's fullest rank, with everything that is resident on that "
      "rank.");
}

// Seconds of a module's microbatches, before and after; where planning cuts them, over the
// same width.
traces::Figure microbatch_figure(const MicrobatchWork& work, bool searched) {
  double most = 0;
  for (const auto* list : {&work.unplanned, &work.planned})
    for (const double seconds : *list) most = std::max(most, seconds);
  const auto [unit, second] = traces::time_unit(most);
  const auto width = static_cast<double>(work.unplanned.size());
  const auto series = [second = second, width](const std::string& name,
                                               const std::vector<double>& list) {
    traces::Series line{name, {}, true};
    const double each = width / std::max(1.0, static_cast<double>(list.size()));
    for (std::size_t i = 0; i < list.size(); ++i)
      line.points.emplace_back(static_cast<double>(i) * each, list[i] / second);
    if (!list.empty()) line.points.emplace_back(width, list.back() / second);
    return line;
  };
  traces::ChartOptions options;
  options.title = work.module;
  options.width = 420;
  options.height = 220;
  options.x_label = "microbatch, lane by lane";
  options.y_label = unit;
  traces::Series before = series("in the order of the batch", work.unplanned);
  before.broad = true;
  const bool cut = searched && work.planned.size() > work.unplanned.size();
  traces::Series after = series(cut        ? "sub-microbatches as they run"
                                : searched ? "as they run"
                                           : "planned",
                                work.planned);
  return {traces::line_chart({before, after}, options), ""};
}

void add_work(const std::vector<MicrobatchWork>& works, const std::string& about,
              const std::string& text, bool searched, traces::Section& section) {
  traces::SideBySide modules;
  for (const MicrobatchWork& module : works)
    modules.figures.push_back(microbatch_figure(module, searched));
  section.blocks.emplace_back(traces::Paragraph{about});
  section.blocks.emplace_back(std::move(modules));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    section.blocks.emplace_back(traces::Paragraph{line});
}

}  // namespace

traces::Section plan_section(const PlanAnswer& answer) {
  traces::Section section{"Stages", {times(answer), memories(answer)}};
  for (const PlannedSplit& split : answer.splits) {
    traces::Table table{split.branch, moves_columns(), {}, {}, ""};
    const auto cell = [&](const std::optional<OtherSplit>& other) {
      return other ? change_text(*other, split, answer.device_memory) : std::string();
    };
    for (std::size_t s = 0; s < split.boundaries.size(); ++s)
      table.rows.push_back({std::to_string(s) + " and " + std::to_string(s + 1),
                            cell(split.boundaries[s].earlier), cell(split.boundaries[s].later)});
    table.note = moves_note(split) + " Now " + bottleneck_text(split);
    for (const std::string& line : other_splits(split, answer.device_memory))
      table.note += " " + line + ".";
    section.blocks.emplace_back(std::move(table));
  }
  if (answer.work)
    add_work(answer.work->microbatches,
             "What each microbatch computes, forward and backward, before and after planning.",
             work_text(*answer.work, answer.global_batch), false, section);
  if (answer.order)
    add_work(answer.order->microbatches,
             "What each microbatch computes, forward, backward and recomputation, before and after "
             "planning: those of encoders are cut, and all run in an order that was searched.",
             order_text(*answer.order), true, section);
  return section;
}

traces::Report plan_page(const PlanAnswer& answer, const std::string& question) {
  return {"Plan",
          question,
          {},
          {plan_section(answer)},
          "Made by `polyphony plan`; nothing is loaded from elsewhere."};
}

}  // namespace polyphony::sim
