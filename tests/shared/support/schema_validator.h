// The part of JSON Schema that our schemas use; an unknown keyword fails the test.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

namespace polyphony::test {

class SchemaValidator {
 public:
  explicit SchemaValidator(const nlohmann::json& root) : root_(root) {}

  bool accepts(const nlohmann::json& value, const nlohmann::json& schema) const {
    if (schema.contains("$ref") && !accepts(value, at(schema.at("$ref").get<std::string>())))
      return false;
    if (schema.contains("if")) {
      const char* branch = accepts(value, schema.at("if")) ? "then" : "else";
      if (schema.contains(branch) && !accepts(value, schema.at(branch))) return false;
    }
    for (const auto& [keyword, rule] : schema.items())
      if (!obeys(value, schema, keyword, rule)) return false;
    return true;
  }

 private:
  const nlohmann::json& at(const std::string& reference) const {
    return root_.at(nlohmann::json::json_pointer(reference.substr(1)));
  }

  bool obeys(const nlohmann::json& value, const nlohmann::json& schema, const std::string& keyword,
             const nlohmann::json& rule) const {
    static const std::set<std::string> ignored = {"$schema",  "$comment", "title", "description",
                                                  "examples", "$defs",    "$ref",  "if",
                                                  "then",     "else"};
    if (ignored.count(keyword) > 0) return true;
    if (keyword == "type") return has_type(value, rule.get<std::string>());
    if (keyword == "enum") return std::find(rule.begin(), rule.end(), value) != rule.end();
    // By the standard, a keyword constrains only values of its own type.
    if (keyword == "minimum")
      return !value.is_number() || value.get<double>() >= rule.get<double>();
    if (keyword == "maximum")
      return !value.is_number() || value.get<double>() <= rule.get<double>();
    if (keyword == "minItems") return !value.is_array() || value.size() >= rule.get<std::size_t>();
    if (keyword == "maxItems") return !value.is_array() || value.size() <= rule.get<std::size_t>();
    if (keyword == "pattern")
      return !value.is_string() ||
             std::regex_match(value.get<std::string>(), std::regex(rule.get<std::string>()));
    if (keyword == "items")
      return !value.is_array() ||
             std::all_of(value.begin(), value.end(),
                         [&](const nlohmann::json& one) { return accepts(one, rule); });
    if (keyword == "required")
      return !value.is_object() ||
             std::all_of(rule.begin(), rule.end(), [&](const nlohmann::json& key) {
               return value.contains(key.get<std::string>());
             });
    if (keyword == "anyOf")
      return std::any_of(rule.begin(), rule.end(),
                         [&](const nlohmann::json& one) { return accepts(value, one); });
    if (keyword == "properties") {
      for (const auto& [key, one] : rule.items())
        if (value.contains(key) && !accepts(value.at(key), one)) return false;
      return true;
    }
    if (keyword == "additionalProperties") {
      if (!value.is_object()) return true;
      for (const auto& [key, one] : value.items()) {
        if (schema.contains("properties") && schema.at("properties").contains(key)) continue;
        if (rule.is_boolean() ? !rule.get<bool>() : !accepts(one, rule)) return false;
      }
      return true;
    }
    FAIL("the schema uses an unknown keyword: " << keyword);
    return false;
  }

  static bool has_type(const nlohmann::json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_boolean();
    return type == "null" && value.is_null();
  }

  const nlohmann::json& root_;
};

}  // namespace polyphony::test
