// The kernels of one layer as a software stack runs them, each with its time on the device.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "shared/chunk/expand.h"
#include "shared/hardware/hardware.h"

namespace polyphony {

struct TimedKernel {
  Kernel kernel;
  Seconds time{};  // on the device, with the profile's correction of the layer
  Seconds host{};  // of launching it
};
// Returns kernel `index` of a layer's expansion; nothing if the stack fuses it with others.
std::optional<TimedKernel> timed_kernel(const Module& module, const Expansion& inside,
                                        std::size_t index, Phase phase, const ChunkContext& context,
                                        const HardwareProfile& profile);
// Returns the kernels that a stack without fusion runs in addition to the expansion of the layer
// `layer` of a stack (shared/cost/unfused.h): those of the phase, and those that it recomputes.
std::vector<TimedKernel> unfused_kernels(const Module& module, const Expansion& inside, int layer,
                                         Phase phase, const WorkSize& size,
                                         const ChunkContext& context,
                                         const HardwareProfile& profile);

}  // namespace polyphony
