#include "sim/sweep/candidate.h"

#include <algorithm>
#include <limits>

#include "shared/scenario/typical_batch.h"
#include "shared/statistics.h"
#include "sim/prediction/effects.h"
#include "sim/prediction/need.h"

namespace polyphony::sim {
namespace {

void describe_into(const Question& question, const Prediction& prediction, bool with_parts,
                   Candidate& candidate) {
  candidate.figures = figures(question.scenario, prediction);
  candidate.estimate = prediction.estimate.step();
  candidate.simulated = prediction.simulated;
  candidate.folded = prediction.lanes > 1;
  candidate.ops = static_cast<std::int64_t>(prediction.program.ops.size());
  if (!with_parts) return;  // the rest takes a tenth of the time of an estimate
  const std::vector<traces::PartTimes> parts =
      traces::part_times(prediction.program, prediction.timeline);
  const Rank critical = traces::critical_rank(parts);
  candidate.parts = parts[critical.value];
  candidate.idle = traces::idle_times(prediction.program, prediction.timeline)[critical.value];
}

}  // namespace

std::map<std::string, double> breakdown_seconds(const Candidate& candidate) {
  std::map<std::string, double> seconds;
  for (const traces::Part part : {traces::Part::forward, traces::Part::backward,
                                  traces::Part::recompute, traces::Part::optimizer})
    seconds[traces::name(part)] = candidate.parts[static_cast<std::size_t>(part)].count();
  for (std::size_t i = 0; i < traces::kIdles; ++i)
    seconds[traces::name(static_cast<traces::Idle>(i))] = candidate.idle.value()[i].count();
  return seconds;
}

Predicted estimate_candidate(const Question& question, const Layout& layout, bool effects,
                             Bytes memory) {
  const std::uint64_t before = programs_lowered();
  const PlannedLayout planned = plan_layout(question.inputs, layout);
  auto outcome = predict_folded(planned);
  if (std::holds_alternative<Infeasible>(outcome)) {
    const NeedOptions alone{.predictor = Predictor::estimate};
    if (const auto no = check_need(planned, alone, memory)) return *no;
    outcome = predict(planned, planned.inputs->typical(), Predictor::estimate);
  }
  if (const auto* no = std::get_if<Infeasible>(&outcome)) return *no;
  const auto& prediction = std::get<Prediction>(outcome);
  Candidate candidate;
  describe_into(question, prediction, effects, candidate);
  if (effects)
    candidate.effects = step_effects(prediction.program, prediction.compiled,
                                     question.scenario.cluster, question.profile);
  candidate.lowerings = programs_lowered() - before;
  return candidate;
}

Predicted examine_candidate(const Question& question, Predictor predictor, const Layout& layout,
                            Bytes memory) {
  const PlannedLayout planned = plan_layout(question.inputs, layout);
  if (const auto no = check_need(planned, {.predictor = predictor}, memory)) return *no;
  const std::uint64_t before = programs_lowered();
  const auto outcome = predict(planned, planned.inputs->typical(), predictor);
  if (const auto* no = std::get_if<Infeasible>(&outcome)) return *no;
  const auto& prediction = std::get<Prediction>(outcome);
  Candidate candidate;
  describe_into(question, prediction, true, candidate);
  candidate.effects = step_effects(planned, prediction);
  candidate.lowerings = programs_lowered() - before;
  return candidate;
}

std::variant<Seconds, Infeasible> stream_candidate(const Question& question, const Layout& layout,
                                                   Bytes memory) {
  constexpr std::uint64_t kBatches = 40;
  const PlannedLayout planned = plan_layout(question.inputs, layout);
  if (const auto no = check_need(planned, {.predictor = Predictor::estimate}, memory)) return *no;
  std::vector<Seconds> steps;
  for (std::uint64_t number = 0; number < kBatches; ++number) {
    const auto outcome =
        predict(planned, batch_of_step(question.scenario, number), Predictor::estimate);
    if (const auto* no = std::get_if<Infeasible>(&outcome)) return *no;
    const Figures of_batch = figures(question.scenario, std::get<Prediction>(outcome));
    if (!of_batch.fits()) return Seconds(std::numeric_limits<double>::infinity());
    steps.push_back(of_batch.step);
  }
  std::sort(steps.begin(), steps.end());
  return nearest_rank(steps, 0.95);
}

void adopt(const Predicted& predicted, Candidate& candidate) {
  candidate.why_not.clear();
  if (const auto* no = std::get_if<Infeasible>(&predicted)) {
    candidate.why_not = no->reason;
    return;
  }
  const auto& from = std::get<Candidate>(predicted);
  candidate.figures = from.figures;
  candidate.parts = from.parts;
  candidate.estimate = from.estimate;
  candidate.simulated = from.simulated;
  candidate.folded = from.folded;
  candidate.ops = from.ops;
  candidate.effects = from.effects;
  if (from.idle) candidate.idle = from.idle;
  candidate.lowerings = from.lowerings;
}

void adopt(const TaskResult<Predicted>& predicted, Candidate& candidate) {
  if (const auto* failed = std::get_if<TaskFailed>(&predicted))
    candidate.why_not = failed->what;
  else
    adopt(std::get<Predicted>(predicted), candidate);
}

}  // namespace polyphony::sim
