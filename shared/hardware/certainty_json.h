// The certainty of a hardware profile as JSON: the key "certainty" of a profile
// (shared/hardware/hardware_json.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "shared/hardware/certainty.h"
#include "shared/text/strict_json.h"

namespace polyphony {

// `parameters`: the keys that "errors" may have. The form lives as long as the program.
const ObjectForm& certainty_form(const std::vector<std::string>& parameters);
Certainty read_certainty(const JsonValue& json);
nlohmann::ordered_json json_value(const Certainty& certainty);

// The same for the part "fitted": ranges of sizes.
const ObjectForm& fitted_ranges_form();
FittedRanges read_fitted_ranges(const JsonValue& json);

}  // namespace polyphony
