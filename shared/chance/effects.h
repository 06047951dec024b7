// The effects of a profile's errors on a step, however the step is composed of prices.
#pragma once

#include <functional>
#include <vector>

#include "shared/hardware/hardware.h"

namespace polyphony {

// Returns, for each error of `profile`, the change of ln(step) for one standard deviation
// (shared/chance/belief.h). `log_step` must return ln(step) with its argument applied to every
// profile that it prices with.
using Moved = std::function<HardwareProfile(const HardwareProfile&)>;
std::vector<double> effects_on(const std::function<double(const Moved&)>& log_step,
                               const HardwareProfile& profile);
// The same for several logarithms at a time: by logarithm, then by error.
std::vector<std::vector<double>> effects_on_all(
    const std::function<std::vector<double>(const Moved&)>& logs, const HardwareProfile& profile);

}  // namespace polyphony
