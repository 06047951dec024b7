// How ranks exchange tensors: collectives (Communicator) and messages (Transport). There are three
// implementations: ranks as threads of one process (exec/transport/in_process.h), Gloo over TCP
// (exec/gloo/gloo.h), and NCCL (exec/device/nccl.h, compiled with POLYPHONY_NCCL).
//
// Ordering: a Communicator is used from one thread at a time, and its collectives are called in the
// same order on every member. Messages are matched by (source, destination, tag); tags are unique
// among the messages in flight, and below kTagEnd. Messages are rendezvous, as in
// shared/program/program.h: a send ends when its receive has the bytes. A message to the sending
// rank itself never blocks, and a message of zero bytes is not sent at all.
//
// Sums: on CPUs, and on devices with --deterministic, contributions are added in group order, in
// float or wider, and rounded once at the end, so results do not depend on timing. NCCL otherwise
// adds in an order of its choice, and rounds bfloat16 at every addition.
//
// Completion: with host tensors, every call blocks until the local part is done and its tensors may
// be written again. With device tensors, a device transport returns when its part is queued on the
// caller's current stream: later operations on that stream find it done. A caller that releases
// such a tensor earlier must record it on that stream (record_stream).
//
// Errors: a lost peer or a timeout throws LostPeer, and the transport is unusable afterwards. For
// calls that were only queued, await() throws it.
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

// Thrown when a peer died, stopped, closed its connection, or did not answer in time.
struct LostPeer : std::runtime_error {
  Rank rank;  // the lost rank; invalid if it is not known
  LostPeer(Rank rank_, const std::string& what) : std::runtime_error(what), rank(rank_) {}
};

// The collectives of a fixed group of ranks. They take contiguous tensors of float, double,
// bfloat16 or int64, of one type per call. `counts` are elements per member, in group order; 0 is
// allowed. The two tensors of a call must not share memory, except where stated below.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int index() const = 0;  // this rank's position in the group
  virtual int size() const = 0;
  // Reduces in place; every member ends with the same bits.
  virtual void all_reduce(torch::Tensor& tensor, Reduction reduction) = 0;
  // Concatenates the members' `mine` in `all`. `mine` may be this member's part of `all`. All
  // members pass equal counts.
  virtual void all_gather(const torch::Tensor& mine, torch::Tensor& all,
                          const std::vector<std::int64_t>& counts) = 0;
  // Sets `mine` to the sum, over members, of this member's part of their `all`. `mine` may be that
  // part of its own `all`; the rest of `all` is unchanged. All members pass equal counts.
  virtual void reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                              const std::vector<std::int64_t>& counts) = 0;
  // The *_beside variants run the same collective overlapped with `beside`: on a device, the
  // current stream meanwhile executes what `beside` queues, which may include further such calls.
  // `beside` may read the tensors that the collective reads, and must not touch its other tensors.
  // Without a device the two run one after the other.
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
  // Copies member i's part j of `send` to member j's part i of `receive`.
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

// One end of a message: a contiguous tensor, of equal byte count at both ends.
struct Transfer {
  torch::Tensor tensor;
  Rank peer;  // may be this rank itself
  std::uint64_t tag = 0;
  bool sends = false;
};

// One rank's connection to all other ranks. Must outlive its communicators.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Rank rank() const = 0;
  virtual int world_size() const = 0;
  // Creates the communicator of a group. Collective over `members` (in group order, this rank among
  // them): all of them call it with the same name, which must not have been used before.
  virtual std::unique_ptr<Communicator> make_group(const std::string& name,
                                                   const std::vector<Rank>& members) = 0;
  // Starts all transfers, then waits for all of them; the order of the peers' calls does not
  // matter. Several threads may call it at the same time.
  virtual void exchange(const std::vector<Transfer>& transfers) = 0;
  void send(const torch::Tensor& tensor, Rank peer, std::uint64_t tag) {
    exchange({Transfer{.tensor = tensor, .peer = peer, .tag = tag, .sends = true}});
  }
  void receive(const torch::Tensor& tensor, Rank peer, std::uint64_t tag) {
    exchange({Transfer{.tensor = tensor, .peer = peer, .tag = tag, .sends = false}});
  }
  virtual void barrier() = 0;
  // Returns true if calls with device tensors are only queued and never wait for a peer, so that
  // one thread makes the calls of all streams. Messages of device tensors are then matched by their
  // order from one rank to another, and not by tags.
  virtual bool queues() const { return false; }
  // Connects the channels on which device messages will travel; each channel once, in ascending
  // order. Both ends call it and may wait for each other here, so that exchange() need not.
  virtual void prepare(const std::vector<Channel>&) {}
  // Blocks until everything queued before the event is done, including exchanges with other ranks.
  // Throws LostPeer if a peer is lost meanwhile.
  virtual void await(const c10::Event& event) { event.synchronize(); }
  // Starts to check, on another thread, that this rank's host makes progress; replaces the check
  // before it. Empty functions end it. `place` must be odd while the host is inside an op, with
  // another value for each op. If it keeps one odd value for 1.25 times the time-out, as when a
  // call of CUDA waits for a kernel that waits for a peer, all ranks end with an error that
  // contains the text of `unended`, which must own what it reads. Does nothing without a device.
  virtual void watch(std::function<std::uint64_t()> /*place*/,
                     std::function<std::string()> /*unended*/) {}
  // Exchanges bytes that are not tensors: post() stores them under a key that holds none (Gloo does
  // not check that); fetch() waits for the key and removes it, and throws LostPeer after the
  // time-out. A fetched key may be used again. Each key has one reader. A rank posts from one
  // thread at a time, and fetches from one thread at a time.
  virtual void post(const std::string& key, const std::string& bytes) = 0;
  virtual std::string fetch(const std::string& key) = 0;
  // Ends the run: every blocked call, here and on all other ranks, throws LostPeer with this rank
  // and the reason.
  virtual void abort(const std::string& reason) = 0;
};

// Returns all ranks in ascending order.
inline std::vector<Rank> everyone(const Transport& transport) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < transport.world_size(); ++rank)
    ranks.emplace_back(static_cast<std::size_t>(rank));
  return ranks;
}

}  // namespace polyphony::exec
