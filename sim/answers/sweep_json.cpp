#include "shared/scenario/scenario_json.h"
#include "sim/answers/answers_json.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

json candidate_json(const Candidate& c, const Model& model) {
  json row = {{"layout", c.text},
              {"layout_form", json::parse(resolved_text(c.layout, model))},
              {"simulated", c.simulated},
              {"placement", name(c.layout.placement)},
              {"step_seconds", c.figures.step.count()},
              {"estimate_seconds", c.estimate.count()},
              {"bound_seconds", c.bound.step.count()},
              {"tokens_per_second_per_rank", c.figures.tokens_per_second_per_rank},
              {"mfu", c.figures.model_flops_utilization},
              {"peak_memory_bytes", c.figures.peak_memory.value},
              {"worst_stage", c.figures.worst_stage},
              {"tied", c.tied}};
  if (c.belief) {
    const SecondsInterval bounds = interval(*c.belief);
    row["interval90_seconds"] = {bounds.low.count(), bounds.high.count()};
  }
  if (c.difference) {
    row["beats_best"] = c.difference->second_wins;
    row["difference90_seconds"] = {c.difference->seconds.low.count(),
                                   c.difference->seconds.high.count()};
  }
  row.update(spent_json(c.figures));
  return row;
}

}  // namespace

json to_json(const Sweep& sweep, const Model& model) {
  json rows = json::array(), rejected = json::array(), beside = json::array(),
       gaps = json::object();
  for (const Candidate& c : sweep.ranked) rows.push_back(candidate_json(c, model));
  for (const Rejection& r : sweep.rejected)
    rejected.push_back(
        {{"placement", name(r.placement)}, {"count", r.count}, {"example", r.example}});
  for (const SetBeside& baseline : sweep.baselines) {
    beside.push_back(candidate_json(baseline.candidate, model));
    beside.back()["name"] = baseline.name;
  }
  for (const auto& [placement, gap] : sweep.gaps) gaps[name(placement)] = gap;
  return {{"profile", sweep.profile},
          {"stack", sweep.stack},
          {"stated_error", sweep.stated_error},
          {"combinations", sweep.combinations},
          {"legal", sweep.legal},
          {"too_large", sweep.too_large},
          {"screened_by_bound", sweep.beaten},
          {"estimated", sweep.estimated},
          {"simulated", sweep.simulated},
          {"gaps", gaps},
          {"not_runnable", sweep.not_runnable},
          {"stopped", sweep.stopped},
          {"ranked", rows},
          {"baselines", beside},
          {"rejected", rejected},
          {"failed", sweep.failed},
          {"why", sweep.why},
          {"notes", sweep.notes}};
}

}  // namespace polyphony::sim
