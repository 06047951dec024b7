// Can this scenario be planned at all? Everything that can be judged without a layout: sizes,
// divisibility, the shape of the model, whether samples fit the sequence, and what this version
// does not support, by name. Layouts: check_layout() in shared/plan/plan.h.
#pragma once

#include "shared/scenario/scenario.h"

namespace polyphony {

// Throws InputError with scenario.file and the JSON pointer.
void validate(const Scenario& scenario);

}  // namespace polyphony
