// Measured times of layers in JSON: the value of "layer_times", of a module in a scenario and by
// module in a profile.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/measured_layers.h"
#include "shared/text/strict_json.h"

namespace polyphony {

Form measured_layers_form();
// Of a value that the form has accepted. Errors: InputError at it.
std::vector<MeasuredLayers> read_measured_layers(const JsonValue& value);
std::string to_json(const std::vector<MeasuredLayers>& entries);

}  // namespace polyphony
