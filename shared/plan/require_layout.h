// The layout of a scenario that has to have one.
#pragma once

#include "shared/plan/plan.h"

namespace polyphony {

// Checked. InputError when there is none or it is illegal.
const Layout& require_layout(const Scenario& scenario);

}  // namespace polyphony
