#include "sim/answers/answers_json.h"

namespace polyphony::sim {

nlohmann::json shared_cores_json(const std::vector<traces::CoreShare>& shared) {
  nlohmann::json ranks = nlohmann::json::array();
  for (const traces::CoreShare& rank : shared)
    ranks.push_back({{"rank", rank.rank.value}, {"recorded_over_processor", rank.ratio()}});
  return ranks;
}

namespace {

// null: unknown.
nlohmann::json within_json(traces::Verdict verdict) {
  if (verdict == traces::Verdict::unknown) return nullptr;
  return verdict == traces::Verdict::within;
}

}  // namespace

nlohmann::json to_json(const std::vector<RunComparison>& runs, double bar) {
  nlohmann::json rows = nlohmann::json::array();
  for (const RunComparison& run : runs) {
    nlohmann::json parts;
    for (const traces::PartComparison& part : run.comparison.average)
      parts[traces::name(part.part)] = {{"predicted_seconds", part.predicted.count()},
                                        {"measured_seconds", part.measured.count()},
                                        {"share_error", part.share_error}};
    rows.push_back({{"run", run.source},
                    {"layout", run.layout},
                    {"profile", run.profile},
                    {"stack", run.stack},
                    {"predicted_seconds", run.comparison.predicted_step.count()},
                    {"measured_seconds", run.comparison.measured_step.median.count()},
                    {"steps", run.comparison.measured_step.count},
                    {"error", run.comparison.step_error},
                    {"repeatability", run.comparison.repeatability()},
                    {"bar", bar},
                    {"within", within_json(run.comparison.verdict(bar))},
                    {"shared_cores", shared_cores_json(run.comparison.shared_cores)},
                    {"parts", parts}});
  }
  return rows;
}

}  // namespace polyphony::sim
