#include "sim/frameworks/target_change.h"

#include <algorithm>

#include "shared/split/planned_layout.h"
#include "shared/text/figure_text.h"
#include "shared/text/json_form.h"
#include "sim/text/layout_words.h"
#include "sim/text/shell_text.h"

namespace polyphony::sim {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Numbers of the optimization, dimensions and stages by name differ without a change of the layout.
bool is_layout(const std::string& key) {
  return key != "vocab_size" && key != "make_vocab_size_divisible_by";
}

std::string words(const OrderedJson& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array() && !value.empty() && value[0].is_array())
    return counted(static_cast<std::int64_t>(value.size()), "list of modules", "lists of modules");
  if (value.is_array()) {
    std::string text;
    for (const OrderedJson& inner : value) text += (text.empty() ? "" : " ") + words(inner);
    return text;
  }
  return value.dump();
}

std::string setting(const TargetVersion& target, std::string key, const OrderedJson& value) {
  if (target != Target::megatron_lm)
    return key + (target == Target::ms_swift ? ": " : "=") + words(value);
  std::replace(key.begin(), key.end(), '_', '-');
  if (value.is_boolean()) return (value.get<bool>() ? "--" : "without --") + key;
  return "--" + key + " " + (value.is_array() ? words(value) : shell_quoted(words(value)));
}

}  // namespace

const char* stack_of(const TargetVersion& target) {
  switch (target.target) {
    case Target::megatron_lm:
    case Target::ms_swift:
      return "megatron-core";
    case Target::megatron_bridge:
      return "megatron-bridge";
    case Target::torchtitan:
      return "fsdp2";
  }
  return "";
}

Emitted emit_planned(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                     const TargetVersion& target) {
  return emit(scenario, plan_layout(borrow_inputs(scenario, profile), layout).resolved, target);
}

std::vector<std::string> changed_settings(const Emitted& before, const Emitted& after) {
  std::vector<std::string> changes;
  for (const auto& [key, value] : after.arguments.items())
    if (is_layout(key) && (!before.arguments.contains(key) || before.arguments[key] != value))
      changes.push_back(setting(after.target, key, value));
  for (const auto& [key, value] : before.arguments.items())
    if (is_layout(key) && !after.arguments.contains(key)) {
      std::string name = key;
      if (after.target == Target::megatron_lm) {
        std::replace(name.begin(), name.end(), '_', '-');
        name = "--" + name;
      }
      changes.push_back("without " + name);
    }
  for (const std::string& what : after.cannot) changes.push_back("cannot: " + what);
  return changes;
}

TargetFound target_found(const Scenario& scenario, const HardwareProfile& profile,
                         const Sweep& sweep, const TargetVersion& target) {
  TargetFound found;
  found.target = target;
  found.runs = !sweep.none_runs;
  const Candidate* best = sweep.none_runs ? &sweep.ranked.front()
                          : sweep.beyond  ? &*sweep.beyond
                                          : nullptr;
  if (best == nullptr) return found;
  found.best = layout_words(scenario.model, best->layout, scenario.cluster);
  const bool by_p95 = wants(scenario.goal, Objective::p95);
  found.best_step = measure_of(*best, by_p95);
  found.slower = measure_of(sweep.ranked.front(), by_p95) / found.best_step - 1;
  found.missing = emit_planned(scenario, best->layout, profile, target).cannot;
  return found;
}

std::string found_text(const TargetFound& found) {
  const std::string name_of = target_text(found.target), remark = remark_on_version(found.target);
  std::string lacks;
  for (const std::string& what : found.missing) lacks += (lacks.empty() ? "" : "; ") + what;
  if (!found.runs)
    return name_of +
           " can run none of the layouts that were searched. Row 1 needs what it lacks: " + lacks +
           ".";
  std::string text = (remark.empty() ? "" : remark + ". ") + name_of + " can run every row.";
  if (!found.best.empty())
    text += " The best layout of all takes " + seconds_text(found.best_step) + " (" + found.best +
            "); row 1 takes " + percent_text(found.slower) + " longer. " + name_of +
            " lacks for it: " + lacks + ".";
  return text +
         " Add --save-row 1 --out row.json to keep row 1, then: polyphony emit row.json --for " +
         name_of + " --out run/";
}

}  // namespace polyphony::sim
