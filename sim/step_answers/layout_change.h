// The differences between two layouts, in words.
#pragma once

#include <string>
#include <vector>

#include "shared/model/layout.h"

namespace polyphony::sim {

// Returns one line per field that differs, such as "language PP 6 -> 3" or "microbatches 16 -> 8";
// none for equal layouts. The name of the module is omitted if all modules share one grid. Blocks
// of stages are compared only if both layouts state them for the same number of stages. Lists of
// actions are not compared.
std::vector<std::string> changes(const Model& model, const Layout& from, const Layout& to);

}  // namespace polyphony::sim
