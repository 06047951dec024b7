#include "sim/shown_runs/comparison_table.h"

#include "sim/console/console.h"
#include "sim/shown/part_notes.h"

namespace polyphony::sim {
namespace {

std::string verdict_text(const traces::Comparison& comparison, double bar) {
  switch (comparison.verdict(bar)) {
    case traces::Verdict::within:
      return "yes";
    case traces::Verdict::outside:
      return "no";
    case traces::Verdict::unknown:
      return "undecided";
  }
  return "?";
}

// A long path by its end: "…/runs/tiny".
std::string short_path(const std::string& path) {
  constexpr std::size_t kLongest = 18;
  if (width_of(path) <= kLongest) return path;
  std::size_t from = path.size();
  while (from > 0) {
    const std::size_t slash = path.find_last_of('/', from - 1);
    if (slash == std::string::npos || path.size() - slash >= kLongest) break;
    from = slash;
  }
  return from < path.size() ? "…" + path.substr(from) : path;
}

}  // namespace

std::string comparison_text(const std::vector<RunComparison>& runs, double bar) {
  Table steps(
      {"run", "predicted", "measured", "error", "repeatability", "within " + percent_text(bar, 0)});
  std::vector<std::string> layouts;
  bool undecided = false;
  for (const RunComparison& run : runs) {
    steps.add({short_path(run.source), seconds_text(run.comparison.predicted_step),
               seconds_text(run.comparison.measured_step.median),
               signed_percent_text(run.comparison.step_error),
               "±" + percent_text(run.comparison.repeatability()),
               verdict_text(run.comparison, bar)});
    layouts.push_back(run.words);
    undecided = undecided || run.comparison.verdict(bar) == traces::Verdict::unknown;
  }
  const std::string share = percent_text(bar, 0);
  std::string out = steps.text_with("layout", layouts, screen_columns());
  out += paragraph(
      "Repeatability: half the interquartile range of the measured steps over their median, less "
      "what their batches are predicted to differ by. Within " +
      share + ": |error| is below " + share + ", or below twice the repeatability." +
      (undecided ? " Undecided: the measured steps vary by more than " + share + "." : ""));
  for (const RunComparison& run : runs) {
    out += "\n" + paragraph(run.source) + run.question +
           paragraph(run.words + "; mean of ranks, profile " + run.profile);
    Table parts({"part", "predicted", "measured", "error", "error / step"});
    for (const traces::PartComparison& part : run.comparison.average)
      if (part.predicted.count() > 0 || part.measured.count() > 0)
        parts.add({traces::table_name(part.part), seconds_text(part.predicted),
                   seconds_text(part.measured), part.error ? signed_percent_text(*part.error) : "-",
                   signed_percent_text(part.share_error)});
    out += parts.text(screen_columns()) +
           paragraph("Idle: the compute stream runs nothing. " + std::string(kOverlapNote));
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
