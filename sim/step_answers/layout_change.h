// What one layout changes of another, in words.
#pragma once

#include <string>
#include <vector>

#include "shared/model/layout.h"

namespace polyphony::sim {

// "language PP 6 -> 3", "microbatches 16 -> 8": one line for each coordinate that differs, none for
// equal layouts. Of one grid for all modules the module is not said. Of stages' blocks only those
// that both state for as many stages. Not said: actions of its own.
std::vector<std::string> changes(const Model& model, const Layout& from, const Layout& to);

}  // namespace polyphony::sim
