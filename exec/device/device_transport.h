// Ranks with a device each: what tensors of devices exchange is queued on their streams by backends of c10d (NCCL's; in
// tests its double), what is the host's goes over the transport beneath.
//   Messages: NCCL ignores tags and matches in order, so that every directed pair of ranks has a group of its own for
//   each channel (Transfer::channel, a stream of the Program at both its ends): what is sent on a channel is received in
//   that order, as shared/program/message_order.h proves. Making groups waits for the other members
//   (exec/device/device_family.h): announce() and prepare() do so, and nothing waits then; a message on a link that
//   nobody prepared, and a group that nobody announced, are made at their first call.
//   Messages to oneself are copies.
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

// How a transport's backends are made, and how it hears of peers that are lost.
struct DeviceCalls {
  DeviceMaking making;
  // Waits for the event; LostPeer when a peer is lost or nothing has ended for too long. abort() is to follow.
  std::function<void(const c10::Event& event)> await;
  // Ends what the groups have queued here.
  std::function<void()> abort;
};

class DeviceTransport : public ForwardingTransport {
 public:
  DeviceTransport(std::unique_ptr<Transport> host, DeviceCalls calls, bool in_order)
      : ForwardingTransport(std::move(host)), calls_(std::move(calls)), in_order_(in_order) {}

  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override;
  void announce(const std::vector<NamedGroup>& groups) override;
  void exchange(const std::vector<Transfer>& transfers) override;
  bool matches_in_order() const override { return true; }
  bool queues() const override { return true; }
  void prepare(const std::vector<Channel>& channels) override;
  void await(const c10::Event& event) override { calls_.await(event); }
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
  std::map<std::string, DeviceBackend> announced_;  // and not yet taken
  std::map<Channel, DeviceBackend> links_;          // under the mutex
  // Messages to oneself that nobody has taken yet; likewise.
  struct Left {
    torch::Tensor tensor;
    std::shared_ptr<c10::Event> made;
  };
  std::map<std::uint64_t, Left> left_;
  bool aborted_ = false;          // likewise
  std::condition_variable came_;  // a message to oneself, or the end
};

// One rank with a device; `host` is of one rank.
std::unique_ptr<Transport> alone_on_device(std::unique_ptr<Transport> host);

}  // namespace polyphony::exec
