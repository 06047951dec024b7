// A second, simple simulator, with which SimGrid's results are compared: the same blocking rules
// and max-min sharing, written as directly as possible. It is slow (every event recomputes every
// rate), for Programs of a few hundred ops. Times in seconds, rates in bytes per second.
//
// Max-min: raise all rates together; a link that fills up freezes its flows; repeat with the rest.
// Source: Bertsekas and Gallager, Data Networks, section 6.5.2.
#pragma once

#include "shared/cost/cost.h"
#include "shared/graph/compile.h"
#include "shared/program/timeline.h"

namespace polyphony::tests {

Timeline play_fluid(const Program& program, const Compiled& compiled, const CostTable& costs);

}  // namespace polyphony::tests
