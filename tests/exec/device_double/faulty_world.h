// Four ranks (as threads) that train two steps with the whole runner, over Gloo and groups of the
// queued device, with the calls of exec/device/device_calls.h; one of the ranks fails.
#pragma once

#include <array>
#include <functional>
#include <latch>
#include <string>

#include "exec/gloo/gloo.h"
#include "shared/units.h"
#include "tests/exec/support/free_port.h"

namespace polyphony::exec::testing {

inline constexpr int kRanks = 4;
inline constexpr Rank kVictim(1);

using Fault = std::function<void(torch::Device)>;  // runs on the thread of the victim's op

struct FaultyWorld {
  GlooOptions options;
  Fault fault = {};  // before the victim's first backward of a step
  Fault after = {};  // before its next compute op
  std::uint64_t step = 1;
  std::string making =
      {};  // not in a step, but at the victim's first split of a family with this in its name
  bool at_meeting = false;  // before it reaches that family
  bool vanishes = false;    // the victim ends without a report and stops its heartbeats
  std::uint16_t port = free_port();
  std::latch survivors{kRanks - 1};
  // Results of the ranks: their exceptions, and the last loss.
  std::array<std::string, kRanks> said{};
  std::array<double, kRanks> losses{};
  Seconds began{};  // time of the fault
  double took = 0;  // seconds from the fault until the last rank has ended
};

GlooOptions impatient();

// Returns when all ranks have ended.
void run(FaultyWorld& world);

}  // namespace polyphony::exec::testing
