// What waits for other ranks, while this one computes: on a device a group's calls go on streams of its own beside what is
// queued on the current one (Communicator), on CPUs a second thread makes them.
#pragma once

#include <functional>
#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec {

// A call of a group; with something beside it on a device.
using Move = std::function<void(const std::function<void()>& beside)>;

// Makes the calls in their order, and does `work` meanwhile, which must not use what they make. All is done, or queued on
// a device's current stream, when this returns.
void beside(torch::Device device, const std::vector<Move>& moves,
            const std::function<void()>& work);

}  // namespace polyphony::exec
