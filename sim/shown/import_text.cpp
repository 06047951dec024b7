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
    text +=
        "predicted step " + seconds_text(step.predicted) + ", worst GPU " + bytes_text(step.memory);
    if (step.room.value > 0) text += " of " + bytes_text(step.room);
    if (step.memory > step.room && step.room.value > 0) text += ": does not fit";
  }
  if (step.measured.count() > 0) {
    text += (text.empty() ? "" : "\n") + std::string("measured step ") +
            seconds_text(step.measured) + " (median of " + counted(step.lines, "line", "lines") +
            " of " + step.log + ")";
    if (step.predicted.count() > 0)
      text += ": the prediction is " +
              signed_percent_text(step.predicted.count() / step.measured.count() - 1) + " off";
  }
  return text.empty() ? "" : text + "\n";
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
  if (!answer.written.empty())
    text += "\n" + paragraph(answer.written + " is written. Next: polyphony why " + answer.written +
                             " (what would be faster?), polyphony simulate " + answer.written);
  return text;
}

}  // namespace polyphony::sim
