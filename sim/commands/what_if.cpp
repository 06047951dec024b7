#include "sim/commands/what_if.h"

#include "shared/scenario/typical_batch.h"
#include "sim/commands/console.h"

namespace polyphony::sim {
namespace {

std::string signed_percent(double before, double after) {
  if (before <= 0) return "";
  const double share = after / before - 1;
  return (share >= 0 ? "+" : "") + percent_text(share);
}

}  // namespace

Unchanged answer_unchanged(const std::string& path, const ProfileChoice& profile,
                           Predictor predictor) {
  try {
    Scenario scenario = read_scenario_file(path);
    read_samples(scenario);
    const auto outcome = predict(scenario, require_layout(scenario), typical_batch(scenario),
                                 load_profile(scenario, profile), predictor);
    if (const auto* no = std::get_if<Infeasible>(&outcome)) return {{}, no->reason, ""};
    return {figures(scenario, std::get<Prediction>(outcome)), "", ""};
  } catch (const InputError& error) {
    return {{}, error.what(), ""};
  }
}

std::string side_by_side(const Unchanged& unchanged, const Figures& changed) {
  if (!unchanged.figures)
    return "without the changes there is no answer: " + unchanged.why_not + "\n";
  const Figures& before = *unchanged.figures;
  Table table({"what if", "as written", "changed", "difference"});
  const auto row = [&](const char* what, const std::string& was, const std::string& is,
                       double was_value, double is_value) {
    table.add({what, was, is, signed_percent(was_value, is_value)});
  };
  row("step", seconds_text(before.step), seconds_text(changed.step), before.step.count(),
      changed.step.count());
  const auto tokens = [](const Figures& f) {
    return count_text(static_cast<std::int64_t>(f.tokens_per_second_per_rank));
  };
  row("tokens/s/rank", tokens(before), tokens(changed), before.tokens_per_second_per_rank,
      changed.tokens_per_second_per_rank);
  row("MFU", percent_text(before.model_flops_utilization),
      percent_text(changed.model_flops_utilization), before.model_flops_utilization,
      changed.model_flops_utilization);
  row("worst memory", bytes_text(before.peak_memory), bytes_text(changed.peak_memory),
      static_cast<double>(before.peak_memory.value),
      static_cast<double>(changed.peak_memory.value));
  if (before.dollars_per_million_tokens > 0 || changed.dollars_per_million_tokens > 0)
    row("USD per million tokens", number_text(before.dollars_per_million_tokens, 4),
        number_text(changed.dollars_per_million_tokens, 4), before.dollars_per_million_tokens,
        changed.dollars_per_million_tokens);
  if (before.energy.value > 0 || changed.energy.value > 0)
    row("kWh per million tokens", number_text(before.kilowatt_hours_per_million_tokens(), 4),
        number_text(changed.kilowatt_hours_per_million_tokens(), 4),
        before.kilowatt_hours_per_million_tokens(), changed.kilowatt_hours_per_million_tokens());
  return table.text();
}

nlohmann::json spent_json(const Figures& figures) {
  const auto known = [](double value) {
    return value > 0 ? nlohmann::json(value) : nlohmann::json();
  };
  return {{"dollars_per_step", known(figures.dollars_per_step)},
          {"dollars_per_million_tokens", known(figures.dollars_per_million_tokens)},
          {"kwh_per_step", known(figures.kilowatt_hours())},
          {"kwh_per_million_tokens", known(figures.kilowatt_hours_per_million_tokens())}};
}

nlohmann::json texts_of(const std::vector<Override>& overrides) {
  nlohmann::json texts = nlohmann::json::array();
  for (const Override& override : overrides) texts.push_back(override.text);
  return texts;
}

nlohmann::json to_json(const Unchanged& unchanged, const Figures& changed,
                       const std::vector<Override>& overrides) {
  nlohmann::json json{{"set", texts_of(overrides)}};
  if (!unchanged.figures) {
    json["unchanged"] = {{"no_answer", unchanged.why_not}};
    return json;
  }
  const Figures& before = *unchanged.figures;
  json["unchanged"] = {{"step_seconds", before.step.count()},
                       {"tokens_per_second_per_rank", before.tokens_per_second_per_rank},
                       {"mfu", before.model_flops_utilization},
                       {"peak_memory_bytes", before.peak_memory.value},
                       {"fits", before.fits()}};
  if (!unchanged.layout.empty()) json["unchanged"]["layout"] = unchanged.layout;
  json["step_change"] = changed.step / before.step - 1;
  return json;
}

}  // namespace polyphony::sim
