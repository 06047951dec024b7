// What hardware figures may be, whoever states them: a scenario's cluster or a profile. Inclusive
// ranges; what is outside is a typing error or a wrong unit. And a device's figures as JSON.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/cluster.h"
#include "shared/text/strict_json.h"

namespace polyphony {

Form latency_form(std::string example);
Form overhead_form(std::string example);
Form link_rate_form(std::string example);
Form power_form(std::string example);
Form price_form(std::string example);

// Keys and forms of a device's figures: name, peaks, memory. An absent peak: not supported.
std::vector<Field> device_fields();
// Of a checked value.
Device read_device(const JsonValue& json);
// The same as a JSON object's text, in the order of device_fields(); what it does not have or is not
// known is left out.
std::string to_json(const Device& device);

}  // namespace polyphony
