// Tables of the keys of a JSON object. The writer of an answer and its JSON Schema
// (sim/answer_json/answer_schema.h) are both generated from the same table, so they always agree.
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
  nlohmann::json schema;  // JSON Schema of the value
  std::string about;      // description of the key in the schema
  std::function<std::optional<nlohmann::json>(const Of&)> value;  // nullopt: the key is omitted
  bool always = true;                                             // required: never omitted
};
template <class Of>
using JsonKeys = std::vector<JsonKey<Of>>;

// Returns the JSON object of one value.
template <class Of>
nlohmann::json object_of(const JsonKeys<Of>& keys, const Of& of) {
  nlohmann::json object = nlohmann::json::object();
  for (const JsonKey<Of>& key : keys) {
    std::optional<nlohmann::json> value = key.value(of);
    POLYPHONY_CHECK(value || !key.always, "the required key " << key.name << " has no value");
    if (value) object[key.name] = std::move(*value);
  }
  return object;
}

// Returns an array with one object per row; `as` converts a row to the type that the keys describe.
template <class Of, class Row, class As = std::identity>
nlohmann::json array_of(const JsonKeys<Of>& keys, const std::vector<Row>& rows, As as = {}) {
  nlohmann::json array = nlohmann::json::array();
  for (const Row& row : rows) array.push_back(object_of<Of>(keys, as(row)));
  return array;
}

// Returns the JSON Schema of such an object; `about` is its description.
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

// Schemas of values.
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
