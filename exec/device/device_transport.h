// The transport for ranks that have a device each. Exchanges of device tensors are queued on their
// streams by c10d backends (NCCL's; in tests, its double); exchanges of host tensors use the inner
// transport.
//
// Messages: NCCL ignores tags and matches messages in order. Every directed pair of ranks has a
// group of its own, a channel, and both ends exchange its messages in the same order
// (shared/program/queue_order.h). A message to the rank itself is a copy.
//
// Making a group waits for its other members (exec/device/device_family.h). announce() and
// prepare() make groups in advance, so that later calls do not wait. A channel that was not
// prepared, or a group that was not announced, is connected at its first call.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/device/device_family.h"
#include "exec/transport/forwarding.h"

namespace polyphony::exec {

// How a transport makes its backends, and how it learns of lost peers.
struct DeviceCalls {
  DeviceMaking making;
  // Waits for the event. Throws LostPeer if a peer is lost or the wait exceeds the timeout; the
  // caller must then call abort().
  std::function<void(const c10::Event& event)> await;
  // Ends what the groups have queued on this rank.
  std::function<void()> abort;
  // Transport::watch(); may be absent.
  std::function<void(std::function<std::uint64_t()> place, std::function<std::string()> unended)>
      watch = {};
};

class DeviceTransport : public ForwardingTransport {
 public:
  DeviceTransport(std::unique_ptr<Transport> host, DeviceCalls calls, bool in_order)
      : ForwardingTransport(std::move(host)), calls_(std::move(calls)), in_order_(in_order) {}

  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override;
  void announce(const std::vector<NamedGroup>& groups) override;
  void exchange(const std::vector<Transfer>& transfers) override;
  bool queues() const override { return true; }
  void prepare(const std::vector<Channel>& channels) override;
  void await(const c10::Event& event) override { calls_.await(event); }
  void watch(std::function<std::uint64_t()> place, std::function<std::string()> unended) override {
    if (calls_.watch) calls_.watch(std::move(place), std::move(unended));
  }
  void abort(const std::string& reason) override;

 private:
  DeviceBackend taken(const std::string& name, const std::vector<Rank>& members);
  DeviceBackend connected(const Channel& channel);
  void connect(const std::vector<Channel>& channels);
  void leave(const Transfer& transfer);
  void take(const Transfer& transfer);

  DeviceCalls calls_;
  bool in_order_;
  std::mutex mutex_;
  FamilyPointer world_;  // null before the first announcement
  int announcements_ = 0;
  std::map<std::string, DeviceBackend> announced_;  // announced, not yet taken by make_group()
  std::map<Channel, DeviceBackend> links_;          // protected by mutex_
  // Messages to this rank itself that were not received yet, by tag; protected by mutex_.
  struct Left {
    torch::Tensor tensor;
    std::shared_ptr<c10::Event> made;
  };
  std::map<std::uint64_t, Left> left_;
  bool aborted_ = false;          // protected by mutex_
  std::condition_variable came_;  // signals a message to this rank itself, or an abort
};

// Returns the transport of a world of one rank with a device. `host` must have a world of one rank.
std::unique_ptr<Transport> alone_on_device(std::unique_ptr<Transport> host);

}  // namespace polyphony::exec
