// What a forward keeps for its backward, while it waits in the host's memory.
//   The tape's graph stays as it is: its tensors' storages are emptied, and filled again before anybody looks
//   (as sharded parameters come and go in PyTorch's FSDP). So every kind of layer can be moved, with the same
//   bits.
//   Of the tape is every storage that an op of the forward has made (seen through LibTorch's call-backs of the
//   dispatcher) and that outlives it, but what the forward returns. Inputs, parameters and what other threads
//   have made were there before and stay.
//   On a device that runs behind the host: pinned memory, and copies that are queued on the current stream; what is
//   computed with is the default stream's.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec {

class HostTape {
 public:
  HostTape() = default;
  explicit HostTape(std::vector<c10::Storage> storages) : storages_(std::move(storages)) {}

  // Each once, in this order; the device's memory is free in between.
  void to_host();
  void to_device();
  std::size_t bytes() const;

 private:
  struct Free {
    void operator()(void* data) const;
  };
  std::vector<c10::Storage> storages_;
  // Of each storage, where it waits: not LibTorch's memory on CPUs, so that a device's count of it falls.
  std::vector<std::unique_ptr<std::byte, Free>> here_;
  std::vector<torch::Tensor> pinned_;
};

// Watches the ops of this thread from its beginning to its end, for tensors of a device of this type. One at a time.
class TapeWatch {
 public:
  explicit TapeWatch(c10::DeviceType type = c10::DeviceType::CPU);
  ~TapeWatch();
  TapeWatch(const TapeWatch&) = delete;
  TapeWatch& operator=(const TapeWatch&) = delete;

  // What was made since and is still there, but the storage of `returned`. The watch is over.
  HostTape tape(const torch::Tensor& returned);

  // For the call-backs.
  void seen(const c10::IValue& value, bool made);
  int depth = 0;

 private:
  using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
  void stop();
  c10::DeviceType type_;
  bool watching_ = true;
  std::uint64_t handle_ = 0;
  // By storage; weak, so that no other takes its address when it is gone.
  std::unordered_map<const c10::StorageImpl*, Weak> found_;
  std::vector<const c10::StorageImpl*> made_;  // of those, in their order
};

}  // namespace polyphony::exec
