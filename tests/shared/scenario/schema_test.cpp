#include "shared/scenario/schema_json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "shared/scenario/scenario_form.h"
#include "tests/shared/support/scenario_files.h"

using namespace polyphony;
using Json = nlohmann::json;

namespace {

// The part of JSON Schema that the published schema uses; an unknown keyword fails the test.
class Validator {
 public:
  explicit Validator(const Json& root) : root_(root) {}

  bool accepts(const Json& value, const Json& schema) const {
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
  const Json& at(const std::string& reference) const {
    return root_.at(Json::json_pointer(reference.substr(1)));
  }

  bool obeys(const Json& value, const Json& schema, const std::string& keyword,
             const Json& rule) const {
    static const std::set<std::string> ignored = {"$schema",  "$comment", "title", "description",
                                                  "examples", "$defs",    "$ref",  "if",
                                                  "then",     "else"};
    if (ignored.count(keyword) > 0) return true;
    if (keyword == "type") return has_type(value, rule.get<std::string>());
    if (keyword == "enum") return std::find(rule.begin(), rule.end(), value) != rule.end();
    // As the standard says, a keyword binds values of its own type only.
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
      return !value.is_array() || std::all_of(value.begin(), value.end(),
                                              [&](const Json& one) { return accepts(one, rule); });
    if (keyword == "required")
      return !value.is_object() || std::all_of(rule.begin(), rule.end(), [&](const Json& key) {
        return value.contains(key.get<std::string>());
      });
    if (keyword == "anyOf")
      return std::any_of(rule.begin(), rule.end(),
                         [&](const Json& one) { return accepts(value, one); });
    if (keyword == "properties") {
      for (const auto& [key, one] : rule.items())
        if (value.contains(key) && !accepts(value.at(key), one)) return false;
      return true;
    }
    if (keyword == "additionalProperties") {
      if (!value.is_object()) return true;
      for (const auto& [key, one] : value.items()) {
        if (schema.at("properties").contains(key)) continue;
        if (rule.is_boolean() ? !rule.get<bool>() : !accepts(one, rule)) return false;
      }
      return true;
    }
    FAIL("the schema uses an unknown keyword: " << keyword);
    return false;
  }

  static bool has_type(const Json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_boolean();
    return type == "null" && value.is_null();
  }

  const Json& root_;
};

bool schema_accepts(const std::string& text) {
  const Json schema = Json::parse(scenario_schema());
  return Validator(schema).accepts(Json::parse(text, nullptr, true, true), schema);
}

}  // namespace

TEST_CASE("every shipped scenario obeys the schema, as written and resolved") {
  for (const std::string& path : test::scenario_paths()) {
    CAPTURE(path);
    CHECK(schema_accepts(test::file_text(path)));
    CHECK(schema_accepts(resolved_text(test::scenario_at(path))));
  }
}

TEST_CASE("the schema refuses what the form refuses") {
  const std::string tiny = test::file_text("scenarios/tiny.json");
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"\"polyphony\": 1", "\"polyphony\": 2"},
      {"\"heads\": 4", "\"heads\": \"4\""},
      {"\"heads\": 4", "\"haeds\": 4"},
      {"\"heads\": 4", "\"heads\": -4"},
      {"\"ranks\": 2", "\"ranks\": 2, \"nic\": 400"},
      {"\"ranks\": 2", "\"ranks\": 2, \"nic\": \"400Gbs\""},
      {"\"merge\": \"2x2\"", "\"merge\": \"2\""},
      {"\"placement\": \"homogeneous\", ", ""},
      {"\"global_batch\": 8", "\"sequenze\": 8"},
      {"\"pp\": 2", "\"pp\": [2]"},
      {"\"precision\": \"fp32\"", "\"precision\": \"fp33\""}};
  for (const auto& [from, to] : changes) {
    CAPTURE(to);
    std::string text = tiny;
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
    CHECK_FALSE(schema_accepts(text));
    CHECK_FALSE(test::refusal(text).empty());
  }
}

TEST_CASE(
    "reader and schema know the same keys: each key of the form is a property of its definition") {
  const Json schema = Json::parse(scenario_schema());
  std::set<std::string> seen;
  int keys = 0;
  const std::function<void(const ObjectForm&)> visit = [&](const ObjectForm& object) {
    if (!seen.insert(object.name).second) return;
    const Json& definition = schema.at("$defs").at(object.name);
    CHECK(definition.at("properties").size() == object.fields.size());
    const std::function<void(const Form&)> descend = [&](const Form& form) {
      if (form.kind == Form::Kind::object) visit(*form.object);
      for (const Form& one : form.of) descend(one);
    };
    for (const Field& field : object.fields) {
      CAPTURE(field.key);
      CHECK(definition.at("properties").contains(field.key));
      CHECK_FALSE(field.about.empty());
      descend(field.form);
      ++keys;
    }
    for (const Form& other : object.others) descend(other);
  };
  visit(scenario_form());
  CHECK(keys > 80);
  // Whole files, and files that change another; "published" and "degraded" stand in lists, and
  // lists are replaced whole.
  CHECK(2 * seen.size() - 2 == schema.at("$defs").size());
}

TEST_CASE("every key of a module belongs to some kind") {
  std::set<std::string> known;
  for (const ModuleKind kind : {ModuleKind::vision, ModuleKind::audio, ModuleKind::language,
                                ModuleKind::projector, ModuleKind::diffusion})
    for (const std::string& key : module_keys(kind)) known.insert(key);
  std::set<std::string> in_form;
  for (const Field& field : model_form().others.front().object->fields) in_form.insert(field.key);
  CHECK(known == in_form);
}
