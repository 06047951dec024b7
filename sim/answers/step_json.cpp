#include "shared/hardware/software.h"
#include "sim/answers/answers_json.h"
#include "traces/compare/spread.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

constexpr double kQuantiles[] = {0.5, 0.95, 0.99};
constexpr const char* kKeys[] = {"p50_seconds", "p95_seconds", "p99_seconds"};

json jitter_json(const JitteredSteps& jittered) {
  json result = {{"steps", jittered.steps.size()},
                 {"predictor", jittered.simulated ? "simulate" : "estimate"}};
  for (std::size_t i = 0; i < std::size(kQuantiles); ++i)
    result[kKeys[i]] = reaches(jittered.steps.size(), kQuantiles[i])
                           ? json(traces::quantile(jittered.steps, kQuantiles[i]).count())
                           : json();
  result["largest_seconds"] = jittered.steps.back().count();
  return result;
}

json chance_json(const StepAnswer& answer) {
  const SecondsInterval bounds = interval(answer.belief);
  const Certainty& certainty = answer.profile.certainty;
  json errors = json::array(), outside = json::array();
  for (std::size_t k = 0; k < answer.belief.effects.size(); ++k)
    errors.push_back({{"parameters", certainty.errors[k]}, {"effect", answer.belief.effects[k]}});
  for (const Extrapolation& found : answer.extrapolated)
    outside.push_back({{"what", found.what}, {"share", found.share}, {"count", found.count}});
  json result = {{"interval90_seconds", {bounds.low.count(), bounds.high.count()}},
                 {"deviation", answer.belief.deviation()},
                 {"parameter_deviation", answer.belief.parameters()},
                 {"residual_deviation", answer.belief.residual},
                 {"footing", name(certainty.footing)},
                 {"freedom", certainty.freedom},
                 {"errors", errors},
                 {"extrapolated", outside},
                 {"mfu", answer.figures.model_flops_utilization},
                 {"megatron_mfu", answer.megatron_mfu},
                 {"torchtitan_mfu", answer.torchtitan_mfu},
                 {"other_software", answer.other_software},
                 {"jitter_known", certainty.jitter.has_value()}};
  if (answer.jittered) result["jitter"] = jitter_json(*answer.jittered);
  return result;
}

}  // namespace

json spent_json(const Figures& figures) {
  const auto known = [](double value) { return value > 0 ? json(value) : json(); };
  return {{"dollars_per_step", known(figures.dollars_per_step)},
          {"dollars_per_million_tokens", known(figures.dollars_per_million_tokens)},
          {"kwh_per_step", known(figures.kilowatt_hours())},
          {"kwh_per_million_tokens", known(figures.kilowatt_hours_per_million_tokens())}};
}

json to_json(const StepAnswer& answer) {
  json parts;
  for (const traces::Part part : traces::parts_shown(answer.parts))
    parts[traces::name(part)] =
        answer.parts[answer.busiest.value][static_cast<std::size_t>(part)].count();
  const Figures& figures = answer.figures;
  Bytes host{};
  for (const RankMemory& rank : answer.prediction.memory) host = std::max(host, rank.host);
  json result{{"layout", answer.layout},
              {"profile", answer.profile.name},
              {"stack", answer.profile.stack.name},
              {"predictor", answer.prediction.simulated ? "simulate" : "estimate"},
              {"folded", answer.prediction.folded},
              {"step_seconds", figures.step.count()},
              {"estimate_seconds", answer.prediction.estimate.step().count()},
              {"stated_error", answer.profile.step_error},
              {"chance", chance_json(answer)},
              {"tokens_per_second_per_rank", figures.tokens_per_second_per_rank},
              {"mfu", figures.model_flops_utilization},
              {"peak_memory_bytes", figures.peak_memory.value},
              {"worst_stage", figures.worst_stage},
              {"host_memory_bytes", host.value},
              {"memory_of", name(answer.profile.stack.memory.keeping)},
              {"fits", figures.fits()},
              {"busiest_rank", answer.busiest.value},
              {"busiest_rank_seconds", parts},
              {"backward_recomputes", answer.recomputes},
              {"notes", answer.notes}};
  if (!answer.out_of_memory.empty()) result["out_of_memory"] = answer.out_of_memory;
  result.update(spent_json(figures));
  return result;
}

}  // namespace polyphony::sim
