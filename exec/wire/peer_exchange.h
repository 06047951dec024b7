// Collectives among processes, built on one step: every member hands each other member a parcel of
// bytes and takes one from it, all at the same time. Who adds up adds all members' numbers, in
// group order (exec/transport/reduce.h), so results are the same bits on every way of exchanging.
//   n members, S bytes of the whole: each sends (n-1)/n·S in a reduce-scatter, twice that in a big
//   all-reduce, its own part n-1 times in an all-gather: no way of exchanging sends less, except
//   that small all-reduces send (n-1)·S to save a round trip.
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
  // `mine` may lie in its place in `all`; as in exec/transport/communicator.h for the others.
  void all_gather(Element element, const std::byte* mine, std::byte* all, const Parts& parts);
  void reduce_scatter(Element element, const std::byte* all, std::byte* mine, const Parts& parts);
  void all_to_all(Element element, const std::byte* send, const Parts& out, std::byte* receive,
                  const Parts& in);

 protected:
  // One parcel per member, its own ignored. `kind` tells different calls apart.
  virtual void exchange(const std::vector<Parcel>& parcels, std::uint32_t kind) = 0;

 private:
  std::byte* inbox(std::size_t bytes);  // kept until the next call
  void gather_and_add(Element element, Reduction reduction, std::byte* data, std::size_t bytes);
  void scatter_add_and_gather(Element element, Reduction reduction, std::byte* data,
                              std::size_t bytes);

  std::size_t index_;
  std::size_t size_;
  std::vector<std::byte> inbox_;
};

}  // namespace polyphony::exec
