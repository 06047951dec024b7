#include "sim/console/console.h"
#include "sim/shown_runs/replay_tables.h"
#include "sim/shown_runs/replay_text.h"
#include "traces/report/report_parts.h"

namespace polyphony::sim {
namespace {

traces::Table page_table(const ReplayTable& of, const std::string& caption,
                         const std::string& note = "") {
  return {caption, of.columns, of.rows, {}, note};
}

std::string title_of(const ReplayAnswer& answer) {
  std::string title;
  for (const std::string& said : answer.said) title += (title.empty() ? "" : ", ") + said;
  return title.empty() ? "Replayed unchanged" : title;
}

traces::SideBySide both_gantts(const ReplayAnswer& answer) {
  traces::GanttOptions options;
  options.width = 620;
  options.most_ranks = 16;
  options.span = answer.before.timeline.makespan;
  if (answer.after) options.span = std::max(*options.span, answer.after->timeline.makespan);
  traces::SideBySide both;
  const auto add = [&](const ReplayedRun& run, const char* title) {
    options.title = title;
    both.figures.push_back({traces::gantt(run.program, run.timeline, options), run.layout});
  };
  add(answer.before, "Before: as measured, replayed");
  if (answer.after) add(*answer.after, "After: changed");
  return both;
}

// The first stretches of the path.
traces::Table path_steps(const ReplayedRun& run, const std::string& caption) {
  constexpr std::size_t kShown = 40;
  traces::Table table{caption, {"class", "rank", "from", "to", "ops"}, {}, {}, ""};
  for (const PathStretch& stretch : run.path) {
    if (table.rows.size() == kShown) {
      table.note = "The first " + std::to_string(kShown) + " of " +
                   std::to_string(run.path.size()) + " stretches.";
      break;
    }
    table.rows.push_back({stretch.label, std::to_string(stretch.rank.value),
                          seconds_text(stretch.start), seconds_text(stretch.end),
                          std::to_string(stretch.ops)});
  }
  return table;
}

traces::Section section_of(const ReplayAnswer& answer) {
  traces::Section section{title_of(answer), {}};
  section.blocks.emplace_back(traces::Paragraph{measured_line(answer) + "."});
  if (answer.after) section.blocks.emplace_back(traces::Paragraph{certainty_line(answer) + "."});
  for (const std::string& note : answer.notes)
    section.blocks.emplace_back(traces::Paragraph{"Note: " + note + "."});
  section.blocks.emplace_back(both_gantts(answer));
  section.blocks.emplace_back(page_table(steps_table(answer), "Where the step goes",
                                         "Parts of the step shown, mean of ranks."));
  if (answer.after)
    section.blocks.emplace_back(page_table(
        differences_table(answer.differences, answer.before.timeline.makespan),
        "What explains the difference",
        "Seconds of the critical paths by class of ops: they add up to the steps shown."));
  section.blocks.emplace_back(path_steps(answer.before, "Critical path before"));
  if (answer.after) section.blocks.emplace_back(path_steps(*answer.after, "Critical path after"));
  section.blocks.emplace_back(
      page_table(mixture_table((answer.after ? *answer.after : answer.before).mixture),
                 "Where durations come from"));
  return section;
}

}  // namespace

traces::Report replay_page(const std::vector<ReplayAnswer>& answers) {
  const ReplayAnswer& first = answers.front();
  traces::Report page{"Polyphony replay",
                      first.source + ", " + first.before.layout,
                      {{seconds_text(first.measured.median), "measured step"},
                       {signed_percent_text(first.replay_error), "replayed unchanged"}},
                      {},
                      "Made by `polyphony replay`; nothing is loaded from elsewhere."};
  if (answers.size() == 1 && first.after) {
    page.facts.push_back({seconds_text(first.after->steps.median), "changed step"});
    page.facts.push_back(
        {signed_percent_text(first.after->steps.median / first.before.steps.median - 1),
         "difference"});
  }
  for (const ReplayAnswer& answer : answers) page.sections.push_back(section_of(answer));
  return page;
}

}  // namespace polyphony::sim
