#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "sim/sweep/candidate.h"

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
          {"libraries", c.figures.library_memory.value},
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

Candidate read_json(const json& value) {
  Candidate c;
  c.figures.step = Seconds(value["step"].get<double>());
  c.figures.tokens_per_second_per_rank = value["tokens"];
  c.figures.model_flops_utilization = value["mfu"];
  c.figures.peak_memory = Bytes(value["memory"].get<std::int64_t>());
  c.figures.library_memory = Bytes(value["libraries"].get<std::int64_t>());
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
  return c;
}

std::string refused(const Infeasible& no) { return json{{"infeasible", no.reason}}.dump(); }

}  // namespace

std::string to_text(const Predicted& predicted) {
  if (const auto* no = std::get_if<Infeasible>(&predicted)) return refused(*no);
  return to_json(std::get<Candidate>(predicted)).dump();
}

std::string to_text(const std::variant<Seconds, Infeasible>& p95) {
  if (const auto* no = std::get_if<Infeasible>(&p95)) return refused(*no);
  const double seconds = std::get<Seconds>(p95).count();
  return json{{"p95", std::isfinite(seconds) ? json(seconds) : json()}}.dump();
}

void read_answer(const TaskResult<std::string>& answer, Candidate& candidate) {
  if (const auto* failed = std::get_if<TaskFailed>(&answer)) {
    candidate.why_not = failed->what;
    return;
  }
  const auto& text = std::get<std::string>(answer);
  const json value = json::parse(text, nullptr, false);
  if (!value.is_object())
    candidate.why_not = text.empty() ? "no answer" : text;
  else if (value.contains("step"))
    adopt(Predicted(read_json(value)), candidate);
  else
    adopt(Predicted(Infeasible{value.value("infeasible", "?")}), candidate);
}

void read_p95(const TaskResult<std::string>& answer, Candidate& candidate) {
  const auto* text = std::get_if<std::string>(&answer);
  const json value = text ? json::parse(*text, nullptr, false) : json();
  if (!value.is_object() || !value.contains("p95")) return;
  candidate.p95 = Seconds(value["p95"].is_null() ? std::numeric_limits<double>::infinity()
                                                 : value["p95"].get<double>());
}

}  // namespace polyphony::sim
