#include "shared/goal/goal_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace polyphony {
namespace {

constexpr std::int64_t kMostNodes = 1 << 20;
constexpr double kMostTokens = 1e18;

const ObjectForm& failures_form() {
  static const ObjectForm form{"failures",
                               "How often a long run fails, and how long it takes to recover",
                               {{"every", quantity_form(UnitKind::time, "50700h", "1h"),
                                 "mean time between failures of one rank"},
                                {"checkpoint_rate", quantity_form(UnitKind::rate, "1GBps", "1kBps"),
                                 "rate to storage per node, when all nodes write at once"},
                                {"restart", quantity_form(UnitKind::time, "10min"),
                                 "time from a failure until the last checkpoint is loaded"}},
                               {}};
  return form;
}

Objective objective_of(const JsonValue& text) { return enum_named<Objective>(text.text()); }

}  // namespace

const ObjectForm& goal_form() {
  const Form objective = choice_form(enum_names<Objective>());
  static const ObjectForm form{
      "goal",
      "The objective of a sweep, and the resources that it may vary",
      {{"objective", any_form({objective, list_form(objective, 1, 2)}),
        "what to minimize (tokens_per_gpu: maximize); for two objectives, a sweep prints the "
        "Pareto "
        "front"},
       {"nodes",
        any_form({integer_form(1, kMostNodes), list_form(integer_form(1, kMostNodes), 1, 64)}),
        "allowed numbers of nodes; all nodes of the cluster when absent"},
       {"global_batch_within", number_form(0, 0.5),
        "share by which the global batch may be changed to suit a layout"},
       {"tokens", number_form(1, kMostTokens),
        "language tokens to train on; required for days and dollars"},
       {"failures", object_form(failures_form()),
        "failures of long runs; those of Llama 3's training when absent"}},
      {}};
  return form;
}

Goal read_goal(const JsonValue& value) {
  Goal goal;
  if (value.has("objective")) {
    const JsonValue objective = value.at("objective");
    goal.objectives.clear();
    if (!objective.is_list()) goal.objectives.push_back(objective_of(objective));
    for (std::size_t i = 0; objective.is_list() && i < objective.size(); ++i)
      goal.objectives.push_back(objective_of(objective.at(i)));
  }
  value.read("nodes", goal.nodes);
  std::sort(goal.nodes.begin(), goal.nodes.end());
  goal.nodes.erase(std::unique(goal.nodes.begin(), goal.nodes.end()), goal.nodes.end());
  value.read("global_batch_within", goal.global_batch_within);
  value.read("tokens", goal.tokens);
  if (value.has("failures")) {
    const JsonValue failures = value.at("failures");
    failures.read("every", goal.failures.every);
    failures.read("checkpoint_rate", goal.failures.checkpoint_rate);
    failures.read("restart", goal.failures.restart);
  }
  if (goal.objectives.size() == 2 && goal.objectives[0] == goal.objectives[1])
    value.refuse_at("objective", "the two objectives are the same",
                    "give one objective, or two different ones");
  if (goal.objectives == std::vector{Objective::memory})
    value.refuse_at("objective", "\"memory\" must be combined with another objective",
                    "for example [\"step\", \"memory\"]");
  for (const Objective objective : goal.objectives)
    if ((objective == Objective::days || objective == Objective::dollars) && !(goal.tokens > 0))
      value.refuse("key \"tokens\" is missing",
                   std::string("objective \"") + name(objective) +
                       "\" needs the number of language tokens to train on, such as 1e12");
  return goal;
}

nlohmann::ordered_json json_value(const Goal& goal) {
  nlohmann::ordered_json json;
  for (const Objective objective : goal.objectives) json["objective"].push_back(name(objective));
  if (!goal.nodes.empty()) json["nodes"] = goal.nodes;
  if (goal.global_batch_within > 0) json["global_batch_within"] = goal.global_batch_within;
  if (goal.tokens > 0) json["tokens"] = goal.tokens;
  json["failures"] = {{"every", to_text(goal.failures.every)},
                      {"checkpoint_rate", to_text(goal.failures.checkpoint_rate)},
                      {"restart", to_text(goal.failures.restart)}};
  return json;
}

}  // namespace polyphony
