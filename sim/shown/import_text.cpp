#include "sim/shown/import_text.h"

#include <vector>

#include "shared/text/figure_text.h"
#include "sim/console/console.h"

namespace polyphony::sim {
namespace {

std::string lines_text(const std::string& title, const std::vector<ImportReport::Line>& lines) {
  if (lines.empty()) return "";
  const std::size_t columns = screen_columns();
  std::string text = "\n" + title + "\n";
  for (const ImportReport::Line& line : lines) {
    std::string first = line.setting.empty() ? line.text : line.setting;
    if (!line.place.empty()) first += "   (" + line.place + ")";
    text += "  " + wrapped(first, columns - 2, 4) + "\n";
    if (!line.setting.empty() && !line.text.empty())
      text += "      " + wrapped(line.text, columns - 6, 6) + "\n";
  }
  return text;
}

std::string step_text(const ImportAnswer& answer) {
  const StepBeside& step = answer.step;
  std::string text;
  if (step.predicted.count() > 0) {
    std::string line =
        "predicted step " + seconds_text(step.predicted) + ", worst GPU " + bytes_text(step.memory);
    if (step.room.value > 0) line += " of " + bytes_text(step.room);
    if (step.memory > step.room && step.room.value > 0) line += ": does not fit";
    text += paragraph(line);
  }
  if (step.measured.count() > 0) {
    std::string line = "measured step " + seconds_text(step.measured) + ", the median of " +
                       (step.profiled ? counted(step.lines, "step", "steps")
                                      : counted(step.lines, "line", "lines")) +
                       " of " + step.log;
    if (step.predicted.count() > 0)
      line +=
          "; the prediction is " + signed_percent_text(step.predicted / step.measured - 1) + " off";
    text += paragraph(line);
  }
  return text;
}

}  // namespace

std::string import_text(const ImportAnswer& answer, bool all) {
  const ImportReport& report = answer.imported.report;
  const auto number = [](const std::vector<ImportReport::Line>& lines) {
    return count_text(static_cast<std::int64_t>(lines.size()));
  };
  std::string text = paragraph(
      std::string(name(answer.imported.framework)) + ": " + number(report.used) +
      " settings understood, " + number(report.approximated) + " approximated, " +
      number(report.not_modeled) + " not modeled, " +
      count_text(static_cast<std::int64_t>(report.ignored.size()) + report.off) +
      " that change neither time nor memory, " + number(report.unknown) + " not understood");
  if (!answer.layout.empty()) text += paragraph(answer.layout);
  if (!answer.imported.illegal.empty())
    text += paragraph("This layout cannot be predicted: " + answer.imported.illegal);
  text += step_text(answer);
  text += lines_text("Not understood (nothing is known about them):", report.unknown);
  text += lines_text("Contradictions:", report.contradictions);
  text += lines_text("Approximated:", report.approximated);
  text += lines_text("Not modeled, though they change time or memory:", report.not_modeled);
  text += lines_text("Assumed:", report.assumed);
  if (all) {
    text += lines_text("Understood:", report.used);
    text += lines_text("Without effect on time and memory:", report.ignored);
  }
  if (answer.written.empty()) return text;
  text += "\n" + paragraph(answer.written + " is written.");
  if (!answer.imported.illegal.empty()) return text;
  text += paragraph("What would be faster: polyphony why " + answer.written);
  if (answer.step.measured.count() > 0)
    text += paragraph("Learn from the measurement: polyphony calibrate " + answer.step.log +
                      " --scenario " + answer.written + " --out ours.json");
  return text;
}

}  // namespace polyphony::sim
