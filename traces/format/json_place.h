// Parses JSON text. An error states the JSON pointer of the place where the text stops being valid:
// for a truncated file, the last element that it reached.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace polyphony::traces {

// Returns the parsed value. Throws InputError if the text is not valid JSON. `file` and `hint` (how
// to get a valid file) are used in the message.
nlohmann::json parse_json(const std::string& text, const std::string& file,
                          const std::string& hint);

}  // namespace polyphony::traces
