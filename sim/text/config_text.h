// Configuration files of other programs as JSON values: YAML, TOML and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace polyphony::sim {

enum class ConfigFormat { yaml, toml, json };

// Throws InputError with "file:line" for a text that is not in the format, and for one that is
// nested too deep or too large. Scalars of YAML are texts; its aliases are copied.
nlohmann::ordered_json parse_config(const std::string& text, const std::string& file,
                                    ConfigFormat format);

}  // namespace polyphony::sim
