// --save-row, --out and --save of `sweep`: found layouts as scenarios of their own.
#pragma once

#include "sim/cli/command.h"
#include "sim/sweep/sweep.h"

namespace polyphony::sim {

// Throws InputError where such a file cannot be written: before the search, not after it. Makes the
// folder of --save.
void check_saved(const Arguments& args);
// Writes the files that the options name; each is reported on stderr. Throws InputError if the row
// of --save-row does not exist.
void save_layouts(const Arguments& args, const Scenario& scenario, const HardwareProfile& profile,
                  const Sweep& result);

}  // namespace polyphony::sim
