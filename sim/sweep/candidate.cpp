#include "sim/sweep/candidate.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "shared/scenario/typical_batch.h"
#include "shared/statistics.h"
#include "sim/prediction/effects.h"
#include "sim/prediction/need.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

json to_json(const Candidate& c) {
  json parts = json::array();
  for (const Seconds part : c.parts) parts.push_back(part.count());
  json idle = json::array();
  if (c.idle)
    for (const Seconds part : *c.idle) idle.push_back(part.count());
  return {{"step", c.figures.step.count()},
          {"tokens", c.figures.tokens_per_second_per_rank},
          {"mfu", c.figures.model_flops_utilization},
          {"memory", c.figures.peak_memory.value},
          {"rank", c.figures.worst_rank.value},
          {"stage", c.figures.worst_stage},
          {"device", c.figures.device_memory.value},
          {"dollars", c.figures.dollars_per_million_tokens},
          {"estimate", c.estimate.count()},
          {"simulated", c.simulated},
          {"folded", c.folded},
          {"ops", c.ops},
          {"parts", parts},
          {"idle", idle},
          {"energy", c.figures.energy.value_or(Joules(0)).value},
          {"step_dollars", c.figures.dollars_per_step},
          {"step_tokens", c.figures.tokens},
          {"effects", c.effects},
          {"lowerings", c.lowerings}};
}

void read_json(const json& value, Candidate& c) {
  c.figures.step = Seconds(value["step"].get<double>());
  c.figures.tokens_per_second_per_rank = value["tokens"];
  c.figures.model_flops_utilization = value["mfu"];
  c.figures.peak_memory = Bytes(value["memory"].get<std::int64_t>());
  c.figures.worst_rank = Rank(value["rank"].get<std::size_t>());
  c.figures.worst_stage = value["stage"];
  c.figures.device_memory = Bytes(value["device"].get<std::int64_t>());
  c.figures.dollars_per_million_tokens = value["dollars"];
  c.figures.energy.reset();
  if (const double joules = value["energy"]; joules > 0) c.figures.energy = Joules(joules);
  c.figures.dollars_per_step = value["step_dollars"];
  c.figures.tokens = value["step_tokens"];
  c.estimate = Seconds(value["estimate"].get<double>());
  c.simulated = value["simulated"];
  c.folded = value["folded"];
  c.ops = value["ops"];
  for (std::size_t i = 0; i < c.parts.size(); ++i)
    c.parts[i] = Seconds(value["parts"][i].get<double>());
  if (!value["idle"].empty()) {
    c.idle.emplace();
    for (std::size_t i = 0; i < c.idle->size(); ++i)
      (*c.idle)[i] = Seconds(value["idle"][i].get<double>());
  }
  c.effects = value["effects"].get<std::vector<double>>();
  c.lowerings = value["lowerings"];
}

std::string refused(const Infeasible& no) { return json{{"infeasible", no.reason}}.dump(); }

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

std::string estimate_candidate(const Question& question, const Layout& layout, bool effects,
                               Bytes memory) {
  const std::uint64_t before = programs_lowered();
  const PlannedLayout planned = plan_layout(question.inputs, layout);
  auto outcome = predict_folded(planned);
  if (std::holds_alternative<Infeasible>(outcome)) {
    const NeedOptions alone{.predictor = Predictor::estimate};
    if (const auto no = check_need(planned, alone, memory)) return refused(*no);
    outcome = predict(planned, planned.inputs->typical(), Predictor::estimate);
  }
  if (const auto* no = std::get_if<Infeasible>(&outcome)) return refused(*no);
  const auto& prediction = std::get<Prediction>(outcome);
  Candidate candidate;
  describe_into(question, prediction, effects, candidate);
  if (effects)
    candidate.effects = step_effects(prediction.program, prediction.compiled,
                                     question.scenario.cluster, question.profile);
  candidate.lowerings = programs_lowered() - before;
  return to_json(candidate).dump();
}

std::string examine_candidate(const Question& question, Predictor predictor, const Layout& layout,
                              Bytes memory) {
  const PlannedLayout planned = plan_layout(question.inputs, layout);
  if (const auto no = check_need(planned, {.predictor = predictor}, memory)) return refused(*no);
  const std::uint64_t before = programs_lowered();
  const auto outcome = predict(planned, planned.inputs->typical(), predictor);
  if (const auto* no = std::get_if<Infeasible>(&outcome)) return refused(*no);
  const auto& prediction = std::get<Prediction>(outcome);
  Candidate candidate;
  describe_into(question, prediction, true, candidate);
  candidate.effects = step_effects(planned, prediction);
  candidate.lowerings = programs_lowered() - before;
  return to_json(candidate).dump();
}

std::string stream_candidate(const Question& question, const Layout& layout, Bytes memory) {
  constexpr std::uint64_t kBatches = 40;
  const PlannedLayout planned = plan_layout(question.inputs, layout);
  if (const auto no = check_need(planned, {.predictor = Predictor::estimate}, memory))
    return refused(*no);
  std::vector<Seconds> steps;
  for (std::uint64_t number = 0; number < kBatches; ++number) {
    const auto outcome =
        predict(planned, batch_of_step(question.scenario, number), Predictor::estimate);
    if (const auto* no = std::get_if<Infeasible>(&outcome)) return refused(*no);
    const Figures of_batch = figures(question.scenario, std::get<Prediction>(outcome));
    if (!of_batch.fits()) return json{{"p95", nullptr}}.dump();
    steps.push_back(of_batch.step);
  }
  std::sort(steps.begin(), steps.end());
  return json{{"p95", nearest_rank(steps, 0.95).count()}}.dump();
}

void read_p95(const std::string& answer, Candidate& candidate) {
  const json value = json::parse(answer, nullptr, false);
  if (!value.is_object() || !value.contains("p95")) return;
  candidate.p95 = Seconds(value["p95"].is_null() ? std::numeric_limits<double>::infinity()
                                                 : value["p95"].get<double>());
}

void read_answer(const std::string& answer, Candidate& candidate) {
  const json value = json::parse(answer, nullptr, false);
  candidate.why_not.clear();
  if (!value.is_object()) {
    candidate.why_not = answer.empty() ? "no answer" : answer;
  } else if (!value.contains("step")) {
    candidate.why_not = value.value("infeasible", value.value("error", "?"));
  } else {
    read_json(value, candidate);
  }
}

}  // namespace polyphony::sim
