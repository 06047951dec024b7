#include "sim/answer_json/answer_schema.h"

#include "shared/form/schema_json.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

constexpr const char* kDefinitions = "#/$defs/";

// Adds to `found` the definitions that `schema` refers to, directly or indirectly.
void collect(const json& schema, const json& from, json& found) {
  if (schema.is_object() && schema.contains("$ref")) {
    const std::string name =
        schema["$ref"].get<std::string>().substr(std::string(kDefinitions).size());
    if (!found.contains(name)) {
      found[name] = from.at(name);
      collect(from.at(name), from, found);
    }
  }
  if (schema.is_structured())
    for (const json& part : schema) collect(part, from, found);
}

}  // namespace

json layout_definitions() {
  json found = json::object();
  collect(reference_to("layout"), json(scenario_schema_value())["$defs"], found);
  return found;
}

std::string schema_document(const std::string& title, const json& root, const json& definitions) {
  nlohmann::ordered_json document = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                     {"title", title}};
  document.update(nlohmann::ordered_json(root));
  if (!definitions.empty()) document["$defs"] = definitions;
  return document.dump(2) + "\n";
}

}  // namespace polyphony::sim
