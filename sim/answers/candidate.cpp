#include "sim/answers/candidate.h"

#include <nlohmann/json.hpp>

#include "sim/prediction/effects.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

json to_json(const Candidate& c) {
  json parts = json::array();
  for (const Seconds part : c.parts) parts.push_back(part.count());
  return {{"step", c.figures.step.count()},
          {"tokens", c.figures.tokens_per_second_per_rank},
          {"mfu", c.figures.model_flops_utilization},
          {"memory", c.figures.peak_memory.value},
          {"rank", c.figures.worst_rank.value},
          {"stage", c.figures.worst_stage},
          {"device", c.figures.device_memory.value},
          {"dollars", c.figures.dollars_per_million_tokens},
          {"estimate", c.estimate.count()},
          {"parts", parts},
          {"energy", c.figures.energy.value},
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
  c.figures.energy = Joules(value["energy"].get<double>());
  c.figures.dollars_per_step = value["step_dollars"];
  c.figures.tokens = value["step_tokens"];
  c.estimate = Seconds(value["estimate"].get<double>());
  for (std::size_t i = 0; i < c.parts.size(); ++i)
    c.parts[i] = Seconds(value["parts"][i].get<double>());
  c.effects = value["effects"].get<std::vector<double>>();
  c.lowerings = value["lowerings"];
}

}  // namespace

std::string examine_candidate(const Scenario& scenario, const Batch& batch,
                              const HardwareProfile& profile, Predictor predictor,
                              const Layout& layout) {
  const std::uint64_t before = programs_lowered();
  const auto outcome = predict(scenario, layout, batch, profile, predictor);
  if (const auto* no = std::get_if<Infeasible>(&outcome))
    return json{{"infeasible", no->reason}}.dump();
  const auto& prediction = std::get<Prediction>(outcome);
  Candidate candidate;
  candidate.figures = figures(scenario, prediction);
  candidate.estimate = prediction.estimate.step();
  const std::vector<traces::PartTimes> parts =
      traces::part_times(prediction.program, prediction.timeline);
  candidate.parts = parts[traces::critical_rank(parts).value];
  candidate.effects = step_effects(scenario, layout, prediction, profile);
  candidate.lowerings = programs_lowered() - before;
  return to_json(candidate).dump();
}

std::string refused_candidate(const std::string& why) { return json{{"infeasible", why}}.dump(); }

std::string read_examined(const std::string& answer, Candidate& candidate) {
  const json value = json::parse(answer, nullptr, false);
  if (!value.is_object()) return answer;
  if (!value.contains("step")) return value.value("infeasible", value.value("error", "?"));
  read_json(value, candidate);
  return "";
}

}  // namespace polyphony::sim
