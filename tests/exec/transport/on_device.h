// A transport that takes CPU tensors, and exchanges copies of them on the device: the checks for
// CPU tensors then also apply to the device, with the same bits.
#pragma once

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/transport/forwarding.h"

namespace polyphony::exec {

// Each thread's work runs on its own stream, as in the runner: on a common stream, groups that two
// ranks call in different orders would wait for each other.
class StreamOfThread {
 public:
  explicit StreamOfThread(torch::Device device) {
    if (device.is_cpu()) return;
    thread_local std::map<torch::DeviceIndex, c10::Stream> streams;
    const c10::impl::VirtualGuardImpl guard(device.type());
    auto own = streams.find(device.index());
    if (own == streams.end())
      own = streams.emplace(device.index(), guard.getStreamFromGlobalPool(device)).first;
    guard_.emplace(own->second);
  }

 private:
  std::optional<c10::StreamGuard> guard_;
};

class OnDevice : public Communicator {
 public:
  OnDevice(std::unique_ptr<Communicator> inner, torch::Device device)
      : inner_(std::move(inner)), device_(device) {}
  int index() const override { return inner_->index(); }
  int size() const override { return inner_->size(); }
  void all_reduce(torch::Tensor& tensor, Reduction reduction) override {
    const StreamOfThread stream(device_);
    torch::Tensor there = tensor.to(device_, false, true);
    inner_->all_reduce(there, reduction);
    tensor.copy_(there);
  }
  void all_gather(const torch::Tensor& mine, torch::Tensor& all,
                  const std::vector<std::int64_t>& counts) override {
    const StreamOfThread stream(device_);
    torch::Tensor there = all.to(device_, false, true);
    inner_->all_gather(mine.to(device_, false, true), there, counts);
    all.copy_(there);
  }
  void reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                      const std::vector<std::int64_t>& counts) override {
    const StreamOfThread stream(device_);
    torch::Tensor there = mine.to(device_, false, true);
    inner_->reduce_scatter(all.to(device_, false, true), there, counts);
    mine.copy_(there);
  }
  void all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                  const std::vector<std::int64_t>& send_counts,
                  const std::vector<std::int64_t>& receive_counts) override {
    const StreamOfThread stream(device_);
    torch::Tensor there = receive.to(device_, false, true);
    inner_->all_to_all(send.to(device_, false, true), there, send_counts, receive_counts);
    receive.copy_(there);
  }

 private:
  std::unique_ptr<Communicator> inner_;
  torch::Device device_;
};

class OnDeviceTransport : public ForwardingTransport {
 public:
  OnDeviceTransport(Transport& inner, torch::Device device)
      : ForwardingTransport(inner), device_(device) {}
  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override {
    return std::make_unique<OnDevice>(inner().make_group(name, members), device_);
  }
  void exchange(const std::vector<Transfer>& transfers) override {
    const StreamOfThread stream(device_);
    std::vector<Transfer> there = transfers;
    for (Transfer& transfer : there) transfer.tensor = transfer.tensor.to(device_, false, true);
    inner().exchange(there);
    for (std::size_t i = 0; i < there.size(); ++i)
      if (!transfers[i].sends) transfers[i].tensor.copy_(there[i].tensor);
  }
  bool queues() const override { return !device_.is_cpu() && inner().queues(); }

 private:
  torch::Device device_;
};

}  // namespace polyphony::exec
