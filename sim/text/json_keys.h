// The keys of an object in a JSON answer as one table: the writer goes by it and the JSON Schema of the
// answer (sim/answer_json/answer_schema.h) is printed from it, so that neither knows what the other does not.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "shared/error.h"

namespace polyphony::sim {

template <class Of>
struct JsonKey {
  std::string name;
  nlohmann::json schema;  // of the value
  std::string about;
  std::function<std::optional<nlohmann::json>(const Of&)> value;  // nothing: left out
  bool always = true;                                             // never left out
};
template <class Of>
using JsonKeys = std::vector<JsonKey<Of>>;

template <class Of>
nlohmann::json object_of(const JsonKeys<Of>& keys, const Of& of) {
  nlohmann::json object = nlohmann::json::object();
  for (const JsonKey<Of>& key : keys) {
    std::optional<nlohmann::json> value = key.value(of);
    POLYPHONY_CHECK(value || !key.always, key.name << " is left out");
    if (value) object[key.name] = std::move(*value);
  }
  return object;
}

// An object for each row, of what `as` makes of it.
template <class Of, class Row, class As = std::identity>
nlohmann::json array_of(const JsonKeys<Of>& keys, const std::vector<Row>& rows, As as = {}) {
  nlohmann::json array = nlohmann::json::array();
  for (const Row& row : rows) array.push_back(object_of<Of>(keys, as(row)));
  return array;
}

template <class Of>
nlohmann::json schema_of(const JsonKeys<Of>& keys, const std::string& about) {
  nlohmann::json schema = {{"type", "object"},
                           {"description", about},
                           {"properties", nlohmann::json::object()},
                           {"required", nlohmann::json::array()},
                           {"additionalProperties", false}};
  for (const JsonKey<Of>& key : keys) {
    nlohmann::json property = key.schema;
    property["description"] = key.about;
    schema["properties"][key.name] = property;
    if (key.always) schema["required"].push_back(key.name);
  }
  return schema;
}

// What a value may be.
inline nlohmann::json a(const char* type) { return {{"type", type}}; }
inline nlohmann::json or_null(const nlohmann::json& schema) {
  return {{"anyOf", {schema, a("null")}}};
}
inline nlohmann::json list_of(const nlohmann::json& schema) {
  return {{"type", "array"}, {"items", schema}};
}
inline nlohmann::json low_and_high() {
  return {{"type", "array"}, {"items", a("number")}, {"minItems", 2}, {"maxItems", 2}};
}
inline nlohmann::json map_of(const nlohmann::json& schema) {
  return {{"type", "object"}, {"additionalProperties", schema}};
}
inline nlohmann::json reference_to(const std::string& definition) {
  return {{"$ref", "#/$defs/" + definition}};
}

}  // namespace polyphony::sim
