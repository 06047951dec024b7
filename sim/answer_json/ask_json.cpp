#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;
using Maybe = std::optional<json>;

const JsonKeys<LeastNodes::Try>& try_keys() {
  using Of = LeastNodes::Try;
  static const JsonKeys<Of> keys{
      {"nodes", a("integer"), "number of nodes", [](const Of& of) { return of.nodes; }},
      {"fits", a("boolean"), "whether a layout was found that fits",
       [](const Of& of) { return of.fits; }}};
  return keys;
}

const JsonKeys<LeastNodes>& least_keys() {
  using Of = LeastNodes;
  static const JsonKeys<Of> keys{
      {"nodes", or_null(a("integer")),
       "the least number of nodes on which a layout fits; null: none of those tried is enough",
       [](const Of& of) { return of.nodes > 0 ? json(of.nodes) : json(); }},
      {"tried", list_of(schema_of(try_keys(), "one number of nodes")),
       "the numbers of nodes that were searched for it, in this order",
       [](const Of& of) { return array_of(try_keys(), of.tried); }}};
  return keys;
}

const JsonKeys<AskedQuestion>& asked_keys() {
  using Of = AskedQuestion;
  static const JsonKeys<Of> keys{
      {"assumed", list_of(a("string")), "what the question left open, and what was assumed",
       [](const Of& of) { return of.asked.assumed; }},
      {"scenario", a("object"), "the question as a scenario (`polyphony schema scenario`)",
       [](const Of& of) { return json::parse(of.asked.text); }},
      {"least_nodes", schema_of(least_keys(), "how many nodes are needed"),
       "how many nodes are needed; only with --gpus ?xNAME. The key \"goal\" then has the best "
       "layout of that number and of its doublings",
       [](const Of& of) { return of.least ? Maybe(object_of(least_keys(), *of.least)) : Maybe(); },
       false}};
  return keys;
}

}  // namespace

json to_json(const AskedQuestion& question) { return object_of(asked_keys(), question); }

std::string ask_schema() {
  json root = sweep_schema_value();
  const json own = schema_of(asked_keys(), "");
  root["description"] = "the ranking of layouts found for a question without a scenario file";
  root["properties"].update(own["properties"]);
  for (const json& key : own["required"]) root["required"].push_back(key);
  return schema_document("polyphony ask --format json", root, candidate_definitions());
}

}  // namespace polyphony::sim
