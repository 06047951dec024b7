// JSON text to a value, with the JSON pointer of the place where bad text stops making sense: a
// cut-off file is named with the last element it reached. `file` is for the message.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace polyphony::traces {

// Throws InputError. `hint` says how to get a good file.
nlohmann::json parse_json(const std::string& text, const std::string& file,
                          const std::string& hint);

}  // namespace polyphony::traces
