// The published JSON Schema (draft 2020-12), printed from the Forms that the reader follows.
// Scenarios that extend another one may leave out required keys and remove keys with null: they get
// definitions of their own, "… (change)".
#pragma once

#include <string>

#include "shared/text/json_form.h"

namespace polyphony {

std::string scenario_schema();
// Of one object form and all that it contains; what `polyphony schema` prints for the scenario.
std::string schema_text(const ObjectForm& form, const std::string& title);

}  // namespace polyphony
