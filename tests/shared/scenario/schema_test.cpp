#include "shared/form/schema_json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "shared/form/scenario_form.h"
#include "shared/hardware/device_file_json.h"
#include "shared/hardware/shipped_files.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/shared/support/schema_validator.h"

using namespace polyphony;
using Json = nlohmann::json;

namespace {

bool schema_accepts(const std::string& text) {
  const Json schema = Json::parse(scenario_schema());
  return test::SchemaValidator(schema).accepts(Json::parse(text, nullptr, true, true), schema);
}

}  // namespace

TEST_CASE("every shipped scenario matches the schema, as written and resolved") {
  for (const std::string& path : test::scenario_paths()) {
    CAPTURE(path);
    CHECK(schema_accepts(test::file_text(path)));
    CHECK(schema_accepts(resolved_text(test::scenario_at(path))));
  }
}

TEST_CASE("device files match their schema, which rejects unknown keys and figures without unit") {
  const Json schema = Json::parse(schema_text(device_file_form(), "device"));
  const auto accepts = [&](const std::string& text) {
    return test::SchemaValidator(schema).accepts(Json::parse(text, nullptr, true, true), schema);
  };
  for (const ShippedFile& file : device_files()) CHECK_MESSAGE(accepts(file.text), file.path);
  const std::string example = test::file_text("scenarios/devices/h100_pcie.json");
  CHECK(accepts(example));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = example;
    return text.replace(text.find(from), from.size(), to);
  };
  CHECK_FALSE(accepts(with("\"nic\"", "\"nik\"")));
  CHECK_FALSE(accepts(with("\"350W\"", "350")));
  CHECK_FALSE(accepts(with("\"350W\"", "\"350GB\"")));
  CHECK_FALSE(accepts(with("\"fit\": \"h100\"", "\"fit\": {\"rows\": \"none\"}")));
  CHECK(accepts(with("  \"fit\": \"h100\",\n", "")));
}

TEST_CASE("the schema rejects what the reader rejects") {
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
    "reader and schema have the same keys: each key of the form is a property of its definition") {
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
  // Whole files, and files that change another; "published", "degraded", "phases" and the parts of
  // a "mixture" stand in lists, and lists are replaced whole.
  CHECK(2 * seen.size() - 4 == schema.at("$defs").size());
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
