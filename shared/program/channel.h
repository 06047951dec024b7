// A channel carries all messages of a Program from one rank to another. They are matched by their
// order alone, which is the same at both ends (shared/program/queue_order.h).
#pragma once

#include <compare>

#include "shared/ids.h"

namespace polyphony {

struct Channel {
  Rank source, destination;
  auto operator<=>(const Channel&) const = default;
};

}  // namespace polyphony
