// The published JSON Schema (draft 2020-12), generated from the Forms that the reader follows.
// A scenario that extends another one may omit required keys and may remove keys with null.
// The schema therefore has a second definition of each object, named "… (change)".
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "shared/text/json_form.h"

namespace polyphony {

// Returns the schema of a scenario file, as `polyphony schema scenario` prints it.
std::string scenario_schema();
nlohmann::ordered_json scenario_schema_value();  // the same as a value
// Returns the schema of one object form and of all forms that it contains.
std::string schema_text(const ObjectForm& form, const std::string& title);

}  // namespace polyphony
