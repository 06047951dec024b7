// Makes Programs of Shape::graph and Shape::serial (tests/sim/random/random_program.h).
#pragma once

#include <cstdint>

#include "shared/program/program.h"

namespace polyphony::tests {

// `serial`: every rank takes part in one exchange or collective at a time, with at most one message
// out and one in.
Program make_graph(bool serial, std::uint64_t seed);

}  // namespace polyphony::tests
