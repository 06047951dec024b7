// Texts of a user's files inside messages.
#pragma once

#include <string>

namespace polyphony::sim {

// Returns the text without control characters, cut after 160 characters.
std::string one_line(std::string text);

}  // namespace polyphony::sim
