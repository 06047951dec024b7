// Exit statuses of polyphony-simulate, besides 0.
#pragma once

namespace polyphony::sim {

inline constexpr int kSimulationFailed = 1;  // the last line of standard error says why
inline constexpr int kOutOfMemory = 2;

}  // namespace polyphony::sim
