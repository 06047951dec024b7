// Collectives among processes, built on one step: every member exchanges a parcel of bytes with
// each other member, all at the same time. Sums are taken over all members' values in group order
// (exec/transport/reduce.h), so every implementation of that step gives the same bits.
//
// Bytes sent per member, with n members and S bytes in the whole array: (n-1)/n·S in a
// reduce-scatter, twice that in a large all-reduce, and (n-1) times the own part in an all-gather.
// These are the minimum. A small all-reduce sends (n-1)·S instead, which saves a round trip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/transport/parts.h"
#include "exec/transport/reduce.h"

namespace polyphony::exec {

struct Parcel {
  const std::byte* out = nullptr;
  std::size_t out_bytes = 0;
  std::byte* in = nullptr;
  std::size_t in_bytes = 0;
};

class PeerExchange {
 public:
  PeerExchange(std::size_t index, std::size_t size) : index_(index), size_(size) {}
  virtual ~PeerExchange() = default;
  PeerExchange(const PeerExchange&) = delete;
  PeerExchange& operator=(const PeerExchange&) = delete;

  std::size_t index() const { return index_; }
  std::size_t size() const { return size_; }

  void all_reduce(Element element, Reduction reduction, std::byte* data, std::size_t bytes);
  // The contracts are those of exec/transport/communicator.h; `mine` may be its part of `all`.
  void all_gather(Element element, const std::byte* mine, std::byte* all, const Parts& parts);
  void reduce_scatter(Element element, const std::byte* all, std::byte* mine, const Parts& parts);
  void all_to_all(Element element, const std::byte* send, const Parts& out, std::byte* receive,
                  const Parts& in);

 protected:
  // Exchanges one parcel per member; this member's own entry is ignored. `kind` identifies the
  // collective, so that implementations can detect members in different calls.
  virtual void exchange(const std::vector<Parcel>& parcels, std::uint32_t kind) = 0;

 private:
  std::byte* inbox(std::size_t bytes);  // receive buffer, valid until the next call
  void gather_and_add(Element element, Reduction reduction, std::byte* data, std::size_t bytes);
  void scatter_add_and_gather(Element element, Reduction reduction, std::byte* data,
                              std::size_t bytes);

  std::size_t index_;
  std::size_t size_;
  std::vector<std::byte> inbox_;
};

}  // namespace polyphony::exec
