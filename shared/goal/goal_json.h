// A Goal as JSON: its form, its reader, and its text with all defaults filled in.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "shared/goal/goal.h"
#include "shared/text/json_form.h"
#include "shared/text/strict_json.h"

namespace polyphony {

const ObjectForm& goal_form();
// Reads a value that the form has accepted. Throws InputError for goals that contradict themselves.
Goal read_goal(const JsonValue& value);
// Returns the goal as JSON with defaults filled in.
nlohmann::ordered_json json_value(const Goal& goal);

}  // namespace polyphony
