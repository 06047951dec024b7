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
  Table steps({"run", "predicted", "measured", "error", "repeatability",
               "within " + percent_text(bar, 0), "layout"});
  for (const RunComparison& run : runs)
    steps.add({run.source, seconds_text(run.comparison.predicted_step),
               seconds_text(run.comparison.measured_step.median),
               signed_percent_text(run.comparison.step_error),
               "±" + percent_text(run.comparison.repeatability()),
               verdict_text(run.comparison, bar), run.layout});
  std::string out = steps.text();
  for (const RunComparison& run : runs) {
    out += "\n" + run.layout + ", mean of ranks (profile " + run.profile + ", stack " + run.stack +
           ")\n";
    Table parts({"part", "predicted", "measured", "error", "of step"});
    for (const traces::PartComparison& part : run.comparison.average)
      if (part.predicted.count() > 0 || part.measured.count() > 0)
        parts.add({traces::name(part.part), seconds_text(part.predicted),
                   seconds_text(part.measured), part.error ? signed_percent_text(*part.error) : "-",
                   signed_percent_text(part.share_error)});
    out += parts.text();
    if (!run.comparison.shared_cores.empty())
      out += "shared cores: " + traces::describe(run.comparison.shared_cores) +
             "; measure it again on an idle machine\n";
  }
  return out;
}

}  // namespace polyphony::sim
