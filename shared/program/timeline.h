// The start and end of each op in a step. Predictions (estimate, simulate) and measurements use the
// same type.
#pragma once

#include <vector>

#include "shared/ids.h"
#include "shared/program/program.h"
#include "shared/units.h"

namespace polyphony {

struct OpTime {
  OpId op;  // position in Program::ops
  Seconds start{};
  Seconds end{};
  // Measured compute ops: processor time of all threads that worked on the op. It is less than
  // end - start if the op waited for a core. Negative: not measured.
  Seconds processor{-1};
  auto operator<=>(const OpTime&) const = default;
};

struct Timeline {
  std::vector<OpTime> ops;  // by op id; the Timeline of one rank has that rank's ops only
  Seconds makespan{};       // time from the first start (at 0) to the last end
  bool operator==(const Timeline&) const = default;
};

}  // namespace polyphony
