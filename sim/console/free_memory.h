// Memory that this process may still take: the least of what the machine has available, what its
// control groups allow (containers, batch systems) and its own limit of addresses (ulimit -v).
#pragma once

#include <string>

#include "shared/units.h"

namespace polyphony::sim {

// Zero: not known. `root` stands before /proc and /sys: a folder made by a test.
Bytes free_memory(const std::string& root = "");

}  // namespace polyphony::sim
