#include "shared/scenario_io/scenario_json.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;
using Maybe = std::optional<json>;

const JsonKeys<Campaign>& campaign_keys() {
  using Of = Campaign;
  static const JsonKeys<Of> keys{
      {"days", a("number"), "duration of the run in days, including failures",
       [](const Of& of) { return of.days(); }},
      {"dollars", a("number"),
       "price of all allocated ranks for that time; 0: the price is unknown",
       [](const Of& of) { return of.dollars; }},
      {"steps", a("number"), "number of steps of the run", [](const Of& of) { return of.steps; }},
      {"share_at_work", a("number"),
       "fraction of the time spent on training; the rest goes to checkpoints and failures",
       [](const Of& of) { return of.checkpoints.efficiency; }},
      {"checkpoint_seconds", a("number"), "seconds to write a checkpoint",
       [](const Of& of) { return of.checkpoint.count(); }},
      {"checkpoint_interval_seconds", a("number"), "seconds of training between two checkpoints",
       [](const Of& of) { return of.checkpoints.interval.count(); }}};
  return keys;
}

struct PointOf {
  const GoalSweep& answer;
  const Reached& reached;
  const VariantSweep& sweep() const { return answer.sweeps[reached.sweep]; }
  const Candidate& candidate() const { return answer.candidate(reached); }
};

const JsonKeys<PointOf>& point_keys() {
  using Of = PointOf;
  static const JsonKeys<Of> keys{
      {"nodes", a("integer"), "number of nodes used",
       [](const Of& of) { return of.sweep().variant.nodes; }},
      {"ranks", a("integer"), "number of ranks on these nodes",
       [](const Of& of) { return of.sweep().scenario.cluster.ranks(); }},
      {"global_batch", a("integer"), "samples per step",
       [](const Of& of) { return of.sweep().variant.global_batch; }},
      {"values", map_of(a("number")),
       "by objective: seconds for the scenario's batch, tokens per second and GPU, days, dollars, "
       "or bytes",
       [](const Of& of) {
         json values;
         const std::vector<Objective>& objectives = of.answer.goal.objectives;
         for (std::size_t i = 0; i < objectives.size(); ++i)
           values[name(objectives[i])] = of.reached.values[i];
         return values;
       }},
      {"campaign", schema_of(campaign_keys(), "the whole run"),
       "the whole run; only if the goal has a number of tokens",
       [](const Of& of) {
         return of.reached.campaign ? Maybe(object_of(campaign_keys(), *of.reached.campaign))
                                    : Maybe();
       },
       false},
      {"candidate", reference_to("candidate"), "the layout",
       [](const Of& of) { return to_json(of.candidate(), of.sweep().scenario.model); }}};
  return keys;
}

const JsonKeys<GoalSweep>& goal_keys() {
  using Of = GoalSweep;
  static const JsonKeys<Of> keys{
      {"objective", list_of({{"enum", enum_names<Objective>()}}), "the objectives: one or two",
       [](const Of& of) {
         json names = json::array();
         for (const Objective each : of.goal.objectives) names.push_back(name(each));
         return names;
       }},
      {"points", list_of(schema_of(point_keys(), "one choice of nodes and batch")),
       "the best layout of each choice, best first; for two objectives, the Pareto front",
       [](const Of& of) {
         return array_of(point_keys(), of.reached,
                         [&](const Reached& reached) { return PointOf{of, reached}; });
       }}};
  return keys;
}

}  // namespace

json goal_schema() {
  return schema_of(goal_keys(), "result for the scenario's goal; only if it has one");
}

json to_json(const GoalSweep& answer) {
  const VariantSweep& best = answer.best();
  json result = to_json(best.sweep, best.scenario.model);
  result["stopped"] = answer.stopped;
  if (!answer.plain()) result["goal"] = object_of(goal_keys(), answer);
  return result;
}

}  // namespace polyphony::sim
