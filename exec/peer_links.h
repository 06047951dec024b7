// Direct TCP connections among the members of one small group, for all-reduces: no helper threads
// and no rendezvous messages, so no scheduler slices lost when ranks outnumber cores. Every
// member's numbers are added in group order.
//   Each call carries its number, byte count and kind: members that call different things find out
//   (InternalError).
// A closed connection throws LostPeer naming the member at its other end.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "exec/communicator.h"
#include "exec/reduce.h"
#include "exec/sockets.h"
#include "shared/units.h"

namespace polyphony::exec {

class PeerLinks {
 public:
  // How members find each other: a store whose `get` waits until the key is set.
  struct Meeting {
    std::function<void(const std::string& key, const std::string& value)> set;
    std::function<std::string(const std::string& key)> get;
    std::string own_address;
  };
  // Collective over the group.
  PeerLinks(const std::vector<Rank>& members, int index, const Meeting& meeting, bool spin,
            const std::atomic<bool>& aborted, Seconds timeout);

  void all_reduce(Element element, Reduction reduction, std::byte* data, std::size_t bytes);

 private:
  struct Parcel {
    const std::byte* out = nullptr;
    std::size_t out_bytes = 0;
    std::byte* in = nullptr;
    std::size_t in_bytes = 0;
  };
  struct Progress;
  void exchange(const std::vector<Parcel>& parcels, std::uint32_t kind);
  bool push(std::size_t peer, const Parcel& parcel, Progress& progress);
  bool pull(std::size_t peer, const Parcel& parcel, Progress& progress);
  void sleep(const std::vector<Progress>& progress) const;
  void gather_and_add(Element element, Reduction reduction, std::byte* data, std::size_t bytes);
  void scatter_add_and_gather(Element element, Reduction reduction, std::byte* data,
                              std::size_t bytes);

  std::vector<Rank> members_;
  std::size_t index_;
  bool spin_;
  const std::atomic<bool>& aborted_;
  Seconds timeout_;
  std::vector<Socket> sockets_;  // by member; none for itself
  std::uint32_t sequence_ = 0;
  std::vector<std::byte> inbox_;
};

}  // namespace polyphony::exec
