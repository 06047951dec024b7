#include "sim/frameworks/target_change.h"

#include <algorithm>

#include "shared/split/planned_layout.h"
#include "shared/text/figure_text.h"
#include "shared/text/json_form.h"
#include "sim/text/shell_text.h"

namespace polyphony::sim {
namespace {

using Json = nlohmann::ordered_json;

// Numbers of the optimization, dimensions and stages by name differ without a change of the layout.
bool is_layout(const std::string& key) {
  return key != "vocab_size" && key != "make_vocab_size_divisible_by";
}

std::string words(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array() && !value.empty() && value[0].is_array())
    return counted(static_cast<std::int64_t>(value.size()), "list of modules", "lists of modules");
  if (value.is_array()) {
    std::string text;
    for (const Json& inner : value) text += (text.empty() ? "" : " ") + words(inner);
    return text;
  }
  return value.dump();
}

std::string setting(const TargetVersion& target, std::string key, const Json& value) {
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

TargetRows rows_for(const Scenario& scenario, const HardwareProfile& profile, const Sweep& sweep,
                    const TargetVersion& target) {
  TargetRows rows;
  rows.target = target;
  for (std::size_t i = 0; i < sweep.ranked.size(); ++i) {
    ++rows.looked_at;
    const Emitted emitted = emit_planned(scenario, sweep.ranked[i].layout, profile, target);
    if (i == 0) rows.missing = emitted.cannot;
    if (!emitted.cannot.empty()) continue;
    rows.row = static_cast<int>(i) + 1;
    rows.slower = sweep.ranked[i].figures.step / sweep.ranked[0].figures.step - 1;
    break;
  }
  return rows;
}

std::string rows_text(const TargetRows& rows) {
  const std::string name_of = target_text(rows.target);
  if (rows.looked_at == 0) return "";
  std::string text;
  if (!rows.missing.empty()) {
    text = "Row 1 cannot be run by " + name_of + ": ";
    for (const std::string& what : rows.missing)
      text += (&what == &rows.missing.front() ? "" : "; ") + what;
    text += ". ";
  }
  if (rows.row == 0)
    return text + "None of the " +
           counted(static_cast<std::int64_t>(rows.looked_at), "row", "rows") +
           " of the answer can; --stack bounds the search by what a framework runs.";
  const std::string keep = " Add --save-row " + std::to_string(rows.row) +
                           " --out row.json to keep it, then: polyphony emit row.json --for " +
                           name_of + " --out run/";
  if (rows.row == 1) return "Row 1 can be run by " + name_of + "." + keep;
  return text + "The first row that can is row " + std::to_string(rows.row) + ", " +
         percent_text(rows.slower) + " slower." + keep;
}

}  // namespace polyphony::sim
