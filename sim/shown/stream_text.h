// The answer of `polyphony simulate --batches` as stdout shows it.
#pragma once

#include <string>

#include "shared/hardware/hardware.h"
#include "sim/step_answers/stream.h"

namespace polyphony::sim {

// Returns percentiles of the step, of idle time and of memory, the batch with the largest peak, and
// how often a step does not fit. `profile`: by which it was predicted. `steps`: of the run whose
// risk is stated. The stream must have at least one batch.
std::string stream_text(const BatchStream& stream, const HardwareProfile& profile, int steps);

}  // namespace polyphony::sim
