// How ranks exchange tensors. One small interface, three implementations: ranks as threads of one
// process (exec/transport/in_process.h), Gloo over TCP (exec/gloo/gloo.h), NCCL (exec/device/nccl.h, compiled with
// POLYPHONY_NCCL).
//   Ordering: each Communicator is used from one thread at a time, its collectives in the same
//   order on every member. Point-to-point is matched by (source, destination, tag); tags are unique
//   among the messages in flight and below kTagEnd. Rendezvous, as in shared/program/program.h: a
//   send ends when its receive has the bytes. A message to oneself never blocks its sender, and one
//   of zero bytes is no message at all. Sums are in group order, so results do not depend on
//   timing; those of bfloat16 are kept in float and rounded once at the end. A lost peer or a
//   time-out throws LostPeer; the transport is dead then.
//   Every call blocks until the local part is done: its tensors may be written again. A transport
//   of devices does so with tensors of the host alone; with a device's it returns when its part is
//   queued on the caller's current stream there, behind what that has to do: what comes after it on
//   that stream finds it done, and the tensors must be recorded there by whoever gives them up
//   earlier. Lost peers are then heard of by await().
#pragma once

#include <c10/core/Event.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "exec/torch_pch.h"
#include "shared/ids.h"
#include "shared/program/channel.h"

namespace polyphony::exec {

enum class Reduction : std::uint8_t { sum, max };

// Gloo's tags are non-negative 32-bit integers, of which half are for groups.
constexpr std::uint64_t kTagEnd = std::uint64_t{1} << 30;

// A peer died, stopped, closed its connection, or did not answer in time.
struct LostPeer : std::runtime_error {
  Rank rank;  // invalid when it could not be told which
  LostPeer(Rank rank_, const std::string& what) : std::runtime_error(what), rank(rank_) {}
};

// A fixed group of ranks. Its collectives take contiguous tensors of float, double, bfloat16 or
// int64, of one type in a call. `counts` are elements per member, in group order; 0 is legal. Where
// two tensors of a call share memory other than as said, it is an error.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int index() const = 0;  // this rank's position in the group
  virtual int size() const = 0;
  // In place; every member ends with the same bits.
  virtual void all_reduce(torch::Tensor& tensor, Reduction reduction) = 0;
  // all = the members' `mine`, one after the other. `mine` may be its own part of `all`. Equal
  // counts on all members.
  virtual void all_gather(const torch::Tensor& mine, torch::Tensor& all,
                          const std::vector<std::int64_t>& counts) = 0;
  // mine = the sum of this member's part of every member's `all`. `mine` may be that part of its
  // own `all`; the rest of `all` is kept. Equal counts on all members.
  virtual void reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                              const std::vector<std::int64_t>& counts) = 0;
  // As all_reduce() and the others, while a device's current stream does what `beside` queues, other such calls among
  // it: it may read what a call reads, no more of its tensors. Elsewhere one after the other.
  virtual void all_reduce_beside(torch::Tensor& tensor, Reduction reduction,
                                 const std::function<void()>& beside) {
    all_reduce(tensor, reduction);
    beside();
  }
  virtual void all_gather_beside(const torch::Tensor& mine, torch::Tensor& all,
                                 const std::vector<std::int64_t>& counts,
                                 const std::function<void()>& beside) {
    all_gather(mine, all, counts);
    beside();
  }
  virtual void reduce_scatter_beside(const torch::Tensor& all, torch::Tensor& mine,
                                     const std::vector<std::int64_t>& counts,
                                     const std::function<void()>& beside) {
    reduce_scatter(all, mine, counts);
    beside();
  }
  // Member i's part j of `send` becomes member j's part i of `receive`.
  virtual void all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                          const std::vector<std::int64_t>& send_counts,
                          const std::vector<std::int64_t>& receive_counts) = 0;
  virtual void all_to_all_beside(const torch::Tensor& send, torch::Tensor& receive,
                                 const std::vector<std::int64_t>& send_counts,
                                 const std::vector<std::int64_t>& receive_counts,
                                 const std::function<void()>& beside) {
    all_to_all(send, receive, send_counts, receive_counts);
    beside();
  }
};

// One end of a message. Contiguous, of equal byte count at both ends.
struct Transfer {
  torch::Tensor tensor;
  Rank peer;  // may be this rank itself
  std::uint64_t tag = 0;
  bool sends = false;
  // The same at both ends: what goes over it from one rank to another arrives in order. For
  // transports without tags.
  std::string channel = {};
};

// One rank's door to all others. Must outlive its communicators.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Rank rank() const = 0;
  virtual int world_size() const = 0;
  // Collective over `members` (in group order, this rank among them): all of them call it with the
  // same, new name.
  virtual std::unique_ptr<Communicator> make_group(const std::string& name,
                                                   const std::vector<Rank>& members) = 0;
  // Starts all, then waits for all: their order at the peers does not matter. Threads may call this
  // at the same time.
  virtual void exchange(const std::vector<Transfer>& transfers) = 0;
  void send(const torch::Tensor& tensor, Rank peer, std::uint64_t tag) {
    exchange({Transfer{.tensor = tensor, .peer = peer, .tag = tag, .sends = true}});
  }
  void receive(const torch::Tensor& tensor, Rank peer, std::uint64_t tag) {
    exchange({Transfer{.tensor = tensor, .peer = peer, .tag = tag, .sends = false}});
  }
  virtual void barrier() = 0;
  // Whether calls with a device's tensors wait for no peer: one thread may make those of all streams.
  virtual bool queues() const { return false; }
  // Whether messages of a device are matched by their order on a channel instead of by tags.
  virtual bool matches_in_order() const { return false; }
  // Messages of a device are to come on these channels, each once, ascending. Both ends say so, and may wait for each
  // other here: exchange() does not.
  virtual void prepare(const std::vector<Channel>&) {}
  // Returns when what was queued before the event is done, whatever of it is exchanged with others; LostPeer else.
  virtual void await(const c10::Event& event) { event.synchronize(); }
  // Bytes that are no tensors: post() leaves them under a new key, fetch() waits for them and takes
  // them away. One reader a key. A rank posts from one thread at a time, and fetches from one.
  virtual void post(const std::string& key, const std::string& bytes) = 0;
  virtual std::string fetch(const std::string& key) = 0;
  // Ends the run: wakes every blocked call, here and on all other ranks, with LostPeer naming this
  // rank and the reason.
  virtual void abort(const std::string& reason) = 0;
};

// All ranks, ascending.
inline std::vector<Rank> everyone(const Transport& transport) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < transport.world_size(); ++rank)
    ranks.emplace_back(static_cast<std::size_t>(rank));
  return ranks;
}

}  // namespace polyphony::exec
