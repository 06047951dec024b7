#include "sim/shown/comparison_table.h"

#include "sim/console/console.h"

namespace polyphony::sim {
namespace {

std::string verdict_text(const traces::Comparison& comparison, double bar) {
  switch (comparison.verdict(bar)) {
    case traces::Verdict::within:
      return "yes";
    case traces::Verdict::outside:
      return "no";
    case traces::Verdict::unknown:
      return "cannot tell: repeats differ by " + percent_text(comparison.repeatability(), 0);
  }
  return "?";
}

}  // namespace

std::string comparison_text(const std::vector<RunComparison>& runs, double bar) {
  Table steps(
      {"run", "predicted", "measured", "error", "repeatability", "within " + percent_text(bar, 0)});
  std::vector<std::string> layouts;
  for (const RunComparison& run : runs) {
    steps.add({run.source, seconds_text(run.comparison.predicted_step),
               seconds_text(run.comparison.measured_step.median),
               signed_percent_text(run.comparison.step_error),
               "±" + percent_text(run.comparison.repeatability()),
               verdict_text(run.comparison, bar)});
    layouts.push_back(run.layout);
  }
  std::string out = steps.text_with("layout", layouts, screen_columns());
  out += paragraph(
      "Repeatability: how much measured steps differ from each other. Within: the error "
      "is less than that share, or than twice the repeatability.");
  for (const RunComparison& run : runs) {
    out += "\n" + run.question + paragraph(run.layout + "; mean of ranks, profile " + run.profile);
    Table parts({"part", "predicted", "measured", "error", "share of step"});
    for (const traces::PartComparison& part : run.comparison.average)
      if (part.predicted.count() > 0 || part.measured.count() > 0)
        parts.add({part.part == traces::Part::idle ? "idle (bubble)" : traces::name(part.part),
                   seconds_text(part.predicted), seconds_text(part.measured),
                   part.error ? signed_percent_text(*part.error) : "-",
                   signed_percent_text(part.share_error)});
    out += parts.text();
    if (!run.comparison.shared_cores.empty())
      out += paragraph("shared cores: " + traces::describe(run.comparison.shared_cores) +
                       "; measure it again on an idle machine");
    if (run.uncalibrated && run.comparison.verdict(bar) == traces::Verdict::outside)
      out += paragraph("Profile " + run.profile +
                       " is an assumption, not measured on this machine. Profile this machine "
                       "first: polyphony profile --out machine.json, then compare with --profile "
                       "machine.json; or fit it to the run: polyphony calibrate.");
  }
  return out;
}

}  // namespace polyphony::sim
