#include "sim/cli/what_if.h"

#include "shared/check/check.h"
#include "shared/scenario/typical_batch.h"
#include "sim/console/console.h"

namespace polyphony::sim {
namespace {

std::string change_text(double before, double after) {
  if (before <= 0) return "";
  return signed_percent_text(after / before - 1);
}

}  // namespace

Unchanged answer_unchanged(const Arguments& args, const StepOptions& options) {
  bool no_layout = false;
  try {
    Scenario scenario = read_scenario_file(args.require("scenario"), {}, args.phase());
    read_samples(scenario);
    no_layout = !scenario.layout;
    std::vector<std::string> notes;  // the changed one's say as much
    const auto outcome = predict_step(scenario, require_layout(scenario), typical_batch(scenario),
                                      load_profile(scenario, args.profile()), options, notes);
    if (const auto* no = std::get_if<Infeasible>(&outcome)) return {{}, no->reason, ""};
    return {figures(scenario, std::get<Prediction>(outcome)), "", ""};
  } catch (const InputError& error) {
    return {{}, error.what(), "", no_layout};
  }
}

std::string side_by_side(const WhatIf& what_if) {
  const Unchanged& unchanged = what_if.unchanged;
  const Figures& changed = what_if.changed;
  if (unchanged.no_layout) return "";  // a layout that --set writes has nothing to be compared with
  if (!unchanged.figures)
    return "without the changes there is no answer: " + unchanged.why_not + "\n";
  const Figures& before = *unchanged.figures;
  Table table({"what if", "as written", "changed", "difference"});
  const auto row = [&](const char* what, const std::string& was, const std::string& is,
                       double was_value, double is_value) {
    table.add({what, was, is, change_text(was_value, is_value)});
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
  if (before.energy || changed.energy)
    row("kWh per million tokens", number_text(before.kilowatt_hours_per_million_tokens(), 4),
        number_text(changed.kilowatt_hours_per_million_tokens(), 4),
        before.kilowatt_hours_per_million_tokens(), changed.kilowatt_hours_per_million_tokens());
  return table.text(screen_columns());
}

std::vector<std::string> texts_of(const std::vector<Override>& overrides) {
  std::vector<std::string> texts;
  for (const Override& override : overrides) texts.push_back(override.text);
  return texts;
}

}  // namespace polyphony::sim
