// A channel carries messages of a Program from one rank to another. Messages on a channel are
// matched by their order alone (shared/program/message_order.h).
#pragma once

#include <compare>
#include <string>

#include "shared/ids.h"

namespace polyphony {

struct Channel {
  std::string name;
  Rank source, destination;
  auto operator<=>(const Channel&) const = default;
};

}  // namespace polyphony
