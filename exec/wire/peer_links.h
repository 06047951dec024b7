// Collectives of one small group over direct TCP connections between its members. There are no
// helper threads and no rendezvous messages, so no time slices are lost to them when ranks
// outnumber cores.
//
// Each call sends its sequence number, byte count and kind: members that call different collectives
// get an InternalError. A closed connection throws LostPeer with the member at its other end.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "exec/transport/communicator.h"
#include "exec/wire/peer_exchange.h"
#include "exec/wire/sockets.h"
#include "shared/units.h"

namespace polyphony::exec {

class PeerLinks : public PeerExchange {
 public:
  // How members find each other: the operations of a store whose `get` waits until the key is set.
  struct Meeting {
    std::function<void(const std::string& key, const std::string& value)> set;
    std::function<std::string(const std::string& key)> get;
    std::string own_address;
  };
  // Connects to all other members. Collective over the group.
  PeerLinks(const std::vector<Rank>& members, std::size_t index, const Meeting& meeting, bool spin,
            const std::atomic<bool>& aborted, Seconds timeout);

 private:
  struct Progress;
  void receive_members(const Listener& listener, std::uint64_t token);
  void exchange(const std::vector<Parcel>& parcels, std::uint32_t kind) override;
  bool push(std::size_t peer, const Parcel& parcel, Progress& progress);
  bool pull(std::size_t peer, const Parcel& parcel, Progress& progress);
  void sleep(const std::vector<Progress>& progress) const;

  std::vector<Rank> members_;
  bool spin_;
  const std::atomic<bool>& aborted_;
  Seconds timeout_;
  std::vector<Socket> sockets_;  // by member; none for itself
  std::uint32_t sequence_ = 0;
};

}  // namespace polyphony::exec
