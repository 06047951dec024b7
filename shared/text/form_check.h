// Parts of JsonValue::check() (shared/text/strict_json.h), for values that have the form's JSON
// type.
#pragma once

#include "shared/text/strict_json.h"

namespace polyphony {

// Checks that all keys are known, required keys are present, and each value has its form.
void check_object(const JsonValue& value, const ObjectForm& form);
// Checks that the text is a number with a unit, in the form's range.
void check_quantity(const JsonValue& value, const Form& form);

}  // namespace polyphony
