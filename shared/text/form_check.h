// Parts of JsonValue::check() (shared/text/strict_json.h), of values that have the form's type.
#pragma once

#include "shared/text/strict_json.h"

namespace polyphony {

// Keys known, required ones there, each as its form says.
void check_object(const JsonValue& value, const ObjectForm& form);
// A number, a unit, in the form's range.
void check_quantity(const JsonValue& value, const Form& form);

}  // namespace polyphony
