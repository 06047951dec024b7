// The form of a scenario file: every key, the values that it may have, and its description.
// The reader (shared/scenario_io/scenario_json.h) and the JSON Schema (shared/form/schema_json.h)
// both follow these tables.
#pragma once

#include <string>
#include <vector>

#include "shared/model/limits.h"
#include "shared/model/model.h"
#include "shared/text/json_form.h"

namespace polyphony {

const ObjectForm& scenario_form();
Form phases_form();                // the form of the scenario's key "phases"
const ObjectForm& model_form();    // the form of the scenario's key "model"
const ObjectForm& cluster_form();  // the form of the scenario's key "cluster"

// Returns the keys of /model/<name> that a module of this kind may have.
std::vector<std::string> module_keys(ModuleKind kind);
// Returns those of module_keys(kind) that only an abstract module has.
std::vector<std::string> abstract_keys(ModuleKind kind);

// Returns the keys that appear next to module names in a layout or search. No module may have one
// of these names.
const std::vector<std::string>& reserved_module_names();

}  // namespace polyphony
