// When each op ran: predicted (estimate, simulate) or measured, the same type.
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
  // Of a compute op that was measured: processor time of all threads that worked for it; less than
  // end - start where it waited for a core. Negative: not measured.
  Seconds processor{-1};
  auto operator<=>(const OpTime&) const = default;
};

struct Timeline {
  std::vector<OpTime> ops;  // by op id; a partial Timeline (one rank's) holds only its own ops
  Seconds makespan{};       // from the first start (0) to the last end
  bool operator==(const Timeline&) const = default;
};

}  // namespace polyphony
