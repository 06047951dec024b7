// The answer of `polyphony import` as text.
#pragma once

#include <string>

#include "sim/frameworks/imported_answer.h"

namespace polyphony::sim {

// `all`: also the settings that were understood and those that do not matter, each on a line.
std::string import_text(const ImportAnswer& answer, bool all);

}  // namespace polyphony::sim
