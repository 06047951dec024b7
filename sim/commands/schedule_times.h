// polyphony schedules --times: what the options of `schedules` say is compared and printed.
#pragma once

#include "sim/cli/command.h"

namespace polyphony::sim {

void compare_times(const Arguments& args);

}  // namespace polyphony::sim
