// Overlaps communication with computation. On a device, a group's calls run on a stream of the
// group, in parallel with what is queued on the current stream (the *_beside calls of
// Communicator); on CPUs a second thread makes the calls.
#pragma once

#include <functional>
#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec {

// One communication call. On a device it overlaps with `beside`; on CPUs it gets an empty function.
using Move = std::function<void(const std::function<void()>& beside)>;

// Makes the calls in their order, and runs `work` meanwhile, which must not use their results. When
// it returns, all of it is done or, on a device, queued on the current stream.
void beside(torch::Device device, const std::vector<Move>& moves,
            const std::function<void()>& work);

}  // namespace polyphony::exec
