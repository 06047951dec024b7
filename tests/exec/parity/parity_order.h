// Did the ranks run a Program in its order? Judged from when each op started and ended, on one
// clock.
//   A stream's ops one after another; no op before what it waits for has ended; no receive ended
//   before its send began, nor, between different ranks, the other way round; no collective ended
//   before all its members had begun it.
#pragma once

#include <string>
#include <vector>

#include "exec/torch_pch.h"
#include "shared/program/program.h"

namespace polyphony::exec::testing {

// `times`: by rank, [ops of the rank × 2] start and end in seconds. `apart`: what clocks of different ranks may
// differ by. Empty: in order.
std::string find_disorder(const Program& program, const std::vector<torch::Tensor>& times,
                          double apart = 0);

}  // namespace polyphony::exec::testing
