// Parses a number written by a user.
#pragma once

#include <optional>
#include <string>

namespace polyphony {

// Returns the finite number that the whole text spells; nothing if it does not.
std::optional<double> number_of(const std::string& text);

}  // namespace polyphony
