// Texts for a shell.
#pragma once

#include <string>

namespace polyphony::sim {

// Returns the text quoted for a shell, if it needs to be.
std::string shell_quoted(const std::string& text);

}  // namespace polyphony::sim
