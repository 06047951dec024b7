// A Goal as JSON: its form, its reader, its resolved text.
#pragma once

#include "shared/goal/goal.h"
#include "shared/text/json_form.h"
#include "shared/text/strict_json.h"

namespace polyphony {

const ObjectForm& goal_form();
// Of a value that the form has accepted. Throws InputError for what contradicts itself.
Goal read_goal(const JsonValue& value);
std::string resolved_text(const Goal& goal);

}  // namespace polyphony
