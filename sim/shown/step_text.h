// The answer of `polyphony simulate` as stdout shows it.
#pragma once

#include <string>

#include "sim/step_answers/step.h"

namespace polyphony::sim {

// Returns the step with its interval, what it costs, how certain it is, where its time goes, and
// the memory of each stage.
std::string step_text(const StepAnswer& answer, const Scenario& scenario, const Layout& layout);

}  // namespace polyphony::sim
