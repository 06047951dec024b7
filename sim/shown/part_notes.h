// Notes under tables of the parts of a step (traces/compare/compare.h).
#pragma once

namespace polyphony::sim {

inline constexpr const char* kIdleNote =
    "Idle: the compute stream runs nothing: pipeline bubble, imbalance of ranks, or waiting for "
    "communication; polyphony why divides it.";

inline constexpr const char* kOverlapNote =
    "Messages, collectives and copies to the host overlap with the rows above them, which alone "
    "add up to the step. "
    "Parameter collectives: all-reduces of gradients; with ZeRO also reduce-scatters and "
    "all-gathers.";

}  // namespace polyphony::sim
