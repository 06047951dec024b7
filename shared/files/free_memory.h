// Memory that this process may still allocate: the least of what the machine has available, what
// its control groups allow (containers, batch systems) and its own limit of addresses (ulimit -v).
#pragma once

#include <string>

#include "shared/units.h"

namespace polyphony {

// Returns zero if it is not known. Tests pass a folder as `root`, which is put before /proc and
// /sys.
Bytes free_memory(const std::string& root = "");

}  // namespace polyphony
