#include "sim/answers/answers_json.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

// By traces::Idle.
constexpr const char* kIdleKeys[traces::kIdles] = {
    "stage_messages", "bridge_messages", "sharded_parameters", "gradient_sums", "host_copies",
    "imbalance",      "bubble"};

json times_json(const std::vector<traces::PartTimes>& parts, const traces::PartTimes& times,
                const traces::IdleTimes& idle) {
  json result, idles;
  for (const traces::Part part : traces::parts_shown(parts))
    result[traces::name(part)] = times[static_cast<std::size_t>(part)].count();
  for (std::size_t i = 0; i < traces::kIdles; ++i) idles[kIdleKeys[i]] = idle[i].count();
  result["idle_for"] = idles;
  return result;
}

json memory_json(const StepAnswer& now) {
  const Rank worst = now.figures.worst_rank;
  json at_peak;
  for (std::size_t kind = 0; kind < kBufferKinds; ++kind)
    if (static_cast<BufferKind>(kind) != BufferKind::host)
      at_peak[name(static_cast<BufferKind>(kind))] =
          now.prediction.memory[worst.value].at_peak[kind].value;
  return {{"stage", now.figures.worst_stage},
          {"rank", worst.value},
          {"peak_bytes", now.figures.peak_memory.value},
          {"at_peak_bytes", at_peak},
          {"host_bytes", now.prediction.memory[worst.value].host.value},
          {"device_bytes", now.figures.device_memory.value},
          {"fits", now.figures.fits()}};
}

}  // namespace

json to_json(const WhyAnswer& answer, const Model& model) {
  const StepAnswer& now = answer.now;
  json worth = json::array();
  for (const WorthTrying& change : answer.worth_trying)
    worth.push_back({{"changes", change.words},
                     {"layout", describe(model, change.layout)},
                     {"estimate_seconds", change.step.count()},
                     {"gain", change.gain},
                     {"certainty", change.certainty},
                     {"peak_memory_bytes", change.peak_memory.value}});
  json result{
      {"layout", now.layout},
      {"profile", now.profile.name},
      {"stack", now.profile.stack.name},
      {"predictor", now.prediction.simulated ? "simulate" : "estimate"},
      {"step_seconds", now.figures.step.count()},
      {"critical_rank", now.busiest.value},
      {"critical_rank_seconds",
       times_json(now.parts, now.parts[now.busiest.value], answer.idle[now.busiest.value])},
      {"mean_seconds", times_json(now.parts, traces::mean(now.parts), traces::mean(answer.idle))},
      {"backward_recomputes", now.recomputes},
      {"memory", memory_json(now)},
      {"estimate_seconds", answer.estimate.count() > 0 ? json(answer.estimate.count()) : json()},
      {"worth_trying", worth},
      {"looked_at", answer.looked_at},
      {"fitting", answer.fitting},
      {"unanswered", answer.unanswered},
      {"notes", answer.notes}};
  if (!now.out_of_memory.empty()) result["out_of_memory"] = now.out_of_memory;
  return result;
}

}  // namespace polyphony::sim
