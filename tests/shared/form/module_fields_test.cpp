// The table of a module's fields: every published model is written and read back unchanged.
#include "shared/form/module_fields.h"

#include <doctest/doctest.h>

#include "shared/model/presets.h"
#include "shared/scenario_io/scenario_json.h"
#include "tests/shared/support/scenario_files.h"

using namespace polyphony;

namespace {

Scenario with_language(const std::string& module) {
  return read_scenario(R"({"polyphony": 1, "extends": "scenarios/tiny.json",
      "about": "tiny.json with a language model of its own, to read and print it.",
      "model": {"vision": null, "projector": null, "language": )" +
                           module + R"(}, "data": {"images": null}, "layout": {"all": {"pp": 1}}})",
                       "fields.json", test::file_text);
}

}  // namespace

TEST_CASE("every language preset is printed and read again") {
  for (const std::string& name : preset_names(ModuleKind::language)) {
    CAPTURE(name);
    const Scenario scenario = with_language(
        R"({"from": null, "preset": ")" + name +
        R"(", "layers": null, "hidden": null, "heads": null, "kv_heads": null, "ffn": null, "vocab": null})");
    Module wanted = find_preset(name)->module;
    wanted.name = "language";
    CHECK(scenario.model.modules[0] == wanted);
    const Scenario again = read_scenario(resolved_text(scenario), "fields.json", test::file_text);
    CHECK(again.model == scenario.model);
  }
}

TEST_CASE("every key has one row, and every kind of module has keys of its own") {
  std::vector<std::string> keys;
  for (const ModuleField& field : module_fields()) {
    CHECK(std::find(keys.begin(), keys.end(), field.key) == keys.end());
    CHECK(field.kinds != 0);
    keys.emplace_back(field.key);
  }
}
