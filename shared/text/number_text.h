// Numbers as text: parses one written by a user, writes an integer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace polyphony {

// Returns the finite number that the whole text spells; nothing if it does not.
std::optional<double> number_of(const std::string& text);

// Returns the decimal digits of `value`, with a minus sign if it is negative.
std::string number(std::int64_t value);

}  // namespace polyphony
