// What a profile's errors do to a step, however it is made of prices.
#pragma once

#include <functional>
#include <vector>

#include "shared/hardware/hardware.h"

namespace polyphony {

// By errors of `profile`: change of ln(step) for one standard deviation (shared/chance/belief.h). `log_step`
// prices with every profile that it knows moved by its argument.
using Moved = std::function<HardwareProfile(const HardwareProfile&)>;
std::vector<double> effects_on(const std::function<double(const Moved&)>& log_step,
                               const HardwareProfile& profile);

}  // namespace polyphony
