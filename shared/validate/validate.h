// Checks everything in a scenario that does not depend on a layout: sizes, divisibility, the edges
// of the model, whether samples fit into the sequence, and features that this version does not
// support. Layouts are checked by check_layout() in shared/check/check.h.
#pragma once

#include "shared/scenario/scenario.h"

namespace polyphony {

// Throws InputError with scenario.file and the JSON pointer of the first wrong value.
void validate(const Scenario& scenario);

}  // namespace polyphony
