// Found layouts as scenarios of their own: --save-row and --out of `sweep` and `ask`, --save of
// `sweep`.
#pragma once

#include "sim/cli/command.h"
#include "sim/sweep/sweep.h"

namespace polyphony::sim {

// Throws InputError where the file of --out cannot be written: before the search, not after it.
void check_saved_row(const Arguments& args);
// Returns a row of the answer, counted from 1, that `option` names (such as "--save-row"). Throws
// InputError if it does not exist.
const Candidate& row_of(const Sweep& result, int row, const std::string& option);
// Writes the row of --save-row, and says so on stderr. Throws InputError if it does not exist.
void save_row(const Arguments& args, const Scenario& scenario, const HardwareProfile& profile,
              const Sweep& result);
// The same with --save, a folder for the best layout of each placement; makes the folder.
void check_saved(const Arguments& args);
void save_layouts(const Arguments& args, const Scenario& scenario, const HardwareProfile& profile,
                  const Sweep& result);

}  // namespace polyphony::sim
