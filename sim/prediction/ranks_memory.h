// The memory that all ranks of a layout take together when they train on one machine's CPU cores,
// and the time of their steps.
#pragma once

#include <optional>

#include "sim/prediction/predict.h"

namespace polyphony::sim {

// Of a process with LibTorch, in addition to the step's buffers.
inline constexpr Bytes kProcess{std::int64_t{64} << 20};

struct RanksNeed {
  Bytes memory;  // the predicted peaks, and kProcess of each rank
  Seconds step;
};
// Estimates them. Absent if the cluster lacks a link, or if the estimate itself needs more than
// `free`, the free memory of this machine. The layout must be accepted by check_layout().
std::optional<RanksNeed> ranks_need(const Scenario& scenario, const Layout& layout,
                                    const HardwareProfile& profile, Bytes free);

}  // namespace polyphony::sim
