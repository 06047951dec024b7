// An optional interface of a Transport (exec/transport/communicator.h): create several groups at
// once. Device transports implement it (exec/device/device_transport.h).
#pragma once

#include <string>
#include <vector>

#include "exec/transport/communicator.h"

namespace polyphony::exec {

struct NamedGroup {
  std::string name;
  std::vector<Rank> members;  // in group order
  // Members exchange rows with each other (all_to_all), which needs a connection for each pair.
  bool exchanges = false;
};

class AnnouncingTransport {
 public:
  virtual ~AnnouncingTransport() = default;
  // Connects the groups that this rank is a member of and will make next. Collective over all
  // ranks.
  //
  // Afterwards make_group() of these groups, and the first calls on them, do not wait for other
  // ranks to connect. A group that was not announced connects at its first call with device
  // tensors, and may wait for its other members there; so does the first all_to_all of a group that
  // does not exchange rows.
  virtual void announce(const std::vector<NamedGroup>& groups) = 0;
};

// Announces the groups if the transport is an AnnouncingTransport; else does nothing.
inline void announce(Transport& transport, const std::vector<NamedGroup>& groups) {
  if (auto* announcing = dynamic_cast<AnnouncingTransport*>(&transport))
    announcing->announce(groups);
}

}  // namespace polyphony::exec
