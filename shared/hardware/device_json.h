// Accepted ranges of hardware figures, both in a scenario's cluster and in a profile, and a
// device's figures as JSON. The ranges are inclusive; a value outside of them is a typing error or
// has a wrong unit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "shared/hardware/cluster.h"
#include "shared/text/strict_json.h"

namespace polyphony {

// Return the JSON form of a figure, with an example for help texts.
Form latency_form(std::string example);
Form overhead_form(std::string example);
Form link_rate_form(std::string example);
Form power_form(std::string example);
Form price_form(std::string example);

// Returns the keys and forms of a device's figures: name, peaks, memory. A format whose peak is
// absent is not supported.
std::vector<Field> device_fields();
// Reads a device from a value that has been checked against device_fields().
Device read_device(const JsonValue& json);
// Returns the device as a JSON object, in the order of device_fields(). Peaks that are not
// supported and figures that are unknown are omitted.
nlohmann::ordered_json json_value(const Device& device);

}  // namespace polyphony
