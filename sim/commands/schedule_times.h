// polyphony schedules --times: compares and prints the schedules that the options name.
#pragma once

#include "sim/cli/command.h"

namespace polyphony::sim {

void compare_times(const Arguments& args);

}  // namespace polyphony::sim
