#include "sim/answers/comparison.h"

#include "sim/commands/console.h"

namespace polyphony::sim {
namespace {

std::string signed_percent(double share) { return (share >= 0 ? "+" : "") + percent_text(share); }

}  // namespace

RunComparison compare_run(const RecordedRun& run, const HardwareProfile& profile) {
  auto outcome = predict(run.scenario, *run.scenario.layout, run.program.batch, profile,
                         Predictor::simulate, run.pace);
  if (const auto* no = std::get_if<Infeasible>(&outcome))
    throw InputError(run.folder + "/scenario.json", "/cluster", no->reason,
                     "name a cluster with that link");
  RunComparison result{run.folder,
                       describe_layout(run.scenario, *run.scenario.layout),
                       profile.name,
                       profile.stack.name,
                       std::move(std::get<Prediction>(outcome)),
                       {}};
  result.comparison = traces::compare(run.program, result.prediction.timeline, run.steps);
  return result;
}

nlohmann::json shared_cores_json(const std::vector<traces::CoreShare>& shared) {
  nlohmann::json ranks = nlohmann::json::array();
  for (const traces::CoreShare& rank : shared)
    ranks.push_back({{"rank", rank.rank.value}, {"recorded_over_processor", rank.ratio()}});
  return ranks;
}

std::string comparison_text(const std::vector<RunComparison>& runs, double bar) {
  Table steps({"run", "predicted", "measured", "error", "repeatability",
               "within " + percent_text(bar, 0), "layout"});
  for (const RunComparison& run : runs)
    steps.add({run.folder, seconds_text(run.comparison.predicted_step),
               seconds_text(run.comparison.measured_step.median),
               signed_percent(run.comparison.step_error),
               "±" + percent_text(run.comparison.repeatability()),
               run.comparison.within(bar) ? "yes" : "no", run.layout});
  std::string out = steps.text();
  for (const RunComparison& run : runs) {
    out += "\n" + run.layout + ", mean of ranks (profile " + run.profile + ", stack " + run.stack +
           ")\n";
    Table parts({"part", "predicted", "measured", "error", "of step"});
    for (const traces::PartComparison& part : run.comparison.average)
      if (part.predicted.count() > 0 || part.measured.count() > 0)
        parts.add({traces::name(part.part), seconds_text(part.predicted),
                   seconds_text(part.measured), part.error ? signed_percent(*part.error) : "-",
                   signed_percent(part.share_error)});
    out += parts.text();
    if (!run.comparison.shared_cores.empty())
      out += "shared cores: " + traces::describe(run.comparison.shared_cores) +
             "; measure it again on an idle machine\n";
  }
  return out;
}

nlohmann::json comparison_json(const std::vector<RunComparison>& runs, double bar) {
  nlohmann::json rows = nlohmann::json::array();
  for (const RunComparison& run : runs) {
    nlohmann::json parts;
    for (const traces::PartComparison& part : run.comparison.average)
      parts[traces::name(part.part)] = {{"predicted_seconds", part.predicted.count()},
                                        {"measured_seconds", part.measured.count()},
                                        {"share_error", part.share_error}};
    rows.push_back({{"run", run.folder},
                    {"layout", run.layout},
                    {"profile", run.profile},
                    {"stack", run.stack},
                    {"predicted_seconds", run.comparison.predicted_step.count()},
                    {"measured_seconds", run.comparison.measured_step.median.count()},
                    {"steps", run.comparison.measured_step.count},
                    {"error", run.comparison.step_error},
                    {"repeatability", run.comparison.repeatability()},
                    {"bar", bar},
                    {"within", run.comparison.within(bar)},
                    {"shared_cores", shared_cores_json(run.comparison.shared_cores)},
                    {"parts", parts}});
  }
  return rows;
}

}  // namespace polyphony::sim
