#include "sim/shown_runs/replay_text.h"

#include <algorithm>

#include "shared/text/json_form.h"
#include "sim/console/console.h"
#include "sim/shown_runs/replay_tables.h"

namespace polyphony::sim {
namespace {

std::string table_text(const ReplayTable& of) {
  Table table(of.columns);
  for (const std::vector<std::string>& row : of.rows) table.add(row);
  return table.text(screen_columns());
}

}  // namespace

std::string replay_text(const ReplayAnswer& answer) {
  std::string text =
      answer.source + ": " + answer.before.layout + "\n" + measured_line(answer) + "\n";
  if (answer.after) {
    text += "changed: " + joined(answer.said) + "\n";
    if (answer.after->layout != answer.before.layout)
      text += "         " + answer.after->layout + "\n";
    text += certainty_line(answer) + "\n";
  }
  text += "\n" + table_text(steps_table(answer));
  if (answer.after)
    text += "\nthe critical path by class, which explains the difference\n" +
            table_text(differences_table(answer.differences, answer.before.timeline.makespan));
  else
    text += "\nthe critical path\n" + table_text(path_table(answer.before));
  text += "\nwhere durations come from\n" +
          table_text(mixture_table((answer.after ? *answer.after : answer.before).mixture));
  for (const std::string& note : answer.notes) text += "\nnote: " + note + "\n";
  return text;
}

std::string replays_text(const std::vector<ReplayAnswer>& answers) {
  Table table({"changed", "step", "90 % interval", "difference", "measured", "scaled", "modeled"});
  for (const ReplayAnswer& answer : answers) {
    const SecondsInterval at = interval(answer.belief);
    const auto by = traces::total(answer.after->mixture);
    const Seconds all = by[0] + by[1] + by[2];
    table.add({joined(answer.said), seconds_text(answer.after->steps.median),
               seconds_text(at.low) + " to " + seconds_text(at.high),
               signed_percent_text(answer.after->steps.median / answer.before.steps.median - 1),
               percent_text(by[0] / all, 0), percent_text(by[1] / all, 0),
               percent_text(by[2] / all, 0)});
  }
  const ReplayAnswer& first = answers.front();
  return first.source + ": " + first.before.layout + "\n" + measured_line(first) + "\n\n" +
         table.text(screen_columns());
}

}  // namespace polyphony::sim
