// Transports whose groups are made together: those of devices (exec/device/device_transport.h). A part of
// exec/transport/communicator.h's Transport that few call.
#pragma once

#include <string>
#include <vector>

#include "exec/transport/communicator.h"

namespace polyphony::exec {

struct NamedGroup {
  std::string name;
  std::vector<Rank> members;  // in group order
};

class AnnouncingTransport {
 public:
  virtual ~AnnouncingTransport() = default;
  // Collective over all ranks: the groups that this rank is among and is to make next. They are connected here, so that
  // make_group() of them and their calls wait for nobody; one that is not announced connects at its first call with a
  // device's tensors, where it may wait for the other members.
  virtual void announce(const std::vector<NamedGroup>& groups) = 0;
};

// To transports that want to know.
inline void announce(Transport& transport, const std::vector<NamedGroup>& groups) {
  if (auto* announcing = dynamic_cast<AnnouncingTransport*>(&transport))
    announcing->announce(groups);
}

}  // namespace polyphony::exec
