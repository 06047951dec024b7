// Measured times of layers as JSON: the value of "layer_times", which a module of a scenario has,
// and a profile has for each module.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "shared/hardware/measured_layers.h"
#include "shared/text/strict_json.h"

namespace polyphony {

Form measured_layers_form();
// Reads a value that the form has accepted. Throws InputError if an entry contradicts itself.
std::vector<MeasuredLayers> read_measured_layers(const JsonValue& value);
nlohmann::ordered_json json_value(const std::vector<MeasuredLayers>& entries);

}  // namespace polyphony
