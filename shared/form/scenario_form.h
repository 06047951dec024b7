// The scenario file's form: every key, what it may hold and what it means. The reader
// (shared/scenario_io/scenario_json.h) and the JSON Schema (shared/form/schema_json.h) both follow
// these tables.
#pragma once

#include <string>
#include <vector>

#include "shared/model/limits.h"
#include "shared/model/model.h"
#include "shared/text/json_form.h"

namespace polyphony {

const ObjectForm& scenario_form();
const ObjectForm& model_form();    // its key "model"
const ObjectForm& cluster_form();  // its key "cluster"

// Keys of /model/<name> that a module of this kind may have.
std::vector<std::string> module_keys(ModuleKind kind);
// Those of them that only an abstract module has.
std::vector<std::string> abstract_keys(ModuleKind kind);

// Words that stand beside module names in layout and search, so that no module may be called so.
const std::vector<std::string>& reserved_module_names();

}  // namespace polyphony
