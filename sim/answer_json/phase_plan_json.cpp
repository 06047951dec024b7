#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

struct PhaseOf {
  const PhaseCost& cost;
  const json& answer;  // of its sweep
};

json or_unknown(bool known, double value) { return known ? json(value) : json(); }

const JsonKeys<PhaseOf>& planned_phase_keys() {
  using Of = PhaseOf;
  static const JsonKeys<Of> keys{
      {"phase", a("string"), "name of the phase", [](const Of& of) { return of.cost.phase; }},
      {"layout", a("string"), "its best layout in words; empty: no layout fits",
       [](const Of& of) { return of.cost.layout; }},
      {"step_seconds", or_null(a("number")), "step time of that layout, in seconds",
       [](const Of& of) { return or_unknown(of.cost.fits(), of.cost.step.count()); }},
      {"steps", a("number"), "number of steps of the phase",
       [](const Of& of) { return of.cost.steps; }},
      {"ranks", a("integer"), "allocated ranks: those of whole nodes",
       [](const Of& of) { return of.cost.ranks; }},
      {"days", or_null(a("number")), "duration of the phase in days",
       [](const Of& of) { return or_unknown(of.cost.fits(), of.cost.days()); }},
      {"rank_hours", or_null(a("number")), "hours of all allocated ranks together",
       [](const Of& of) { return or_unknown(of.cost.fits(), of.cost.rank_hours()); }},
      {"dollars", or_null(a("number")), "price of these hours; null: the price is unknown",
       [](const Of& of) { return or_unknown(of.cost.dollars > 0, of.cost.dollars); }},
      {"failures_included", a("boolean"),
       "true if the duration includes failures and checkpoints, because the goal has tokens",
       [](const Of& of) { return of.cost.campaign; }},
      {"sweep", reference_to("sweep"), "the sweep's answer for the phase",
       [](const Of& of) { return of.answer; }}};
  return keys;
}

struct PlanOf {
  const PhasePlan& plan;
  const std::vector<json>& answers;
};

const JsonKeys<PlanOf>& phase_plan_keys() {
  using Of = PlanOf;
  static const JsonKeys<Of> keys{
      {"phases", list_of(schema_of(planned_phase_keys(), "one phase")),
       "the phases in order; fewer if the search was stopped",
       [](const Of& of) {
         json phases = json::array();
         for (std::size_t i = 0; i < of.answers.size(); ++i)
           phases.push_back(
               object_of(planned_phase_keys(), PhaseOf{of.plan.phases[i], of.answers[i]}));
         return phases;
       }},
      {"days", or_null(a("number")),
       "duration of all phases, one after the other, in days; null: a phase has no layout",
       [](const Of& of) { return or_unknown(of.plan.complete(), of.plan.days()); }},
      {"rank_hours", or_null(a("number")), "hours of all allocated ranks; null: likewise",
       [](const Of& of) { return or_unknown(of.plan.complete(), of.plan.rank_hours()); }},
      {"dollars", or_null(a("number")),
       "price of all phases; null: likewise, or a price is unknown",
       [](const Of& of) { return or_unknown(of.plan.dollars() > 0, of.plan.dollars()); }}};
  return keys;
}

}  // namespace

json to_json(const PhasePlan& plan, const std::vector<json>& answers) {
  return object_of(phase_plan_keys(), PlanOf{plan, answers});
}

std::string phase_plan_schema() {
  json definitions = candidate_definitions();
  definitions["sweep"] = sweep_schema_value();
  return schema_document(
      "polyphony sweep --format json, of a scenario with phases",
      schema_of(phase_plan_keys(), "the best layout of each phase, and all phases"), definitions);
}

}  // namespace polyphony::sim
