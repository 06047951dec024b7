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
  auto operator<=>(const OpTime&) const = default;
};

struct Timeline {
  std::vector<OpTime> ops;  // by op id; a partial Timeline (one rank's) holds only its own ops
  Seconds makespan{};       // from the first start (0) to the last end
  bool operator==(const Timeline&) const = default;
};

}  // namespace polyphony
