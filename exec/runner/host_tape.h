// Saved activations of one forward pass while they are offloaded to host memory.
//   The autograd graph stays as it is: the storages of its tensors are emptied, and filled again
//   before they are read (as PyTorch's FSDP does with sharded parameters). So every kind of layer
//   can be offloaded, with bitwise identical results.
//
//   Offloaded is every storage that an op of the forward pass has allocated (observed through
//   LibTorch's dispatcher callbacks) and that outlives the pass, except what the pass returns.
//   Inputs, parameters and storages allocated by other threads existed before and stay.
//
//   On a device that runs asynchronously to the host: pinned memory, and copies queued on the
//   current stream; compute uses the default stream.
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

  // Call each once, in this order. The device memory is free in between.
  void to_host();
  void to_device();
  std::size_t bytes() const;

 private:
  struct Free {
    void operator()(void* data) const;
  };
  std::vector<c10::Storage> storages_;
  // The host copy of each storage. On CPUs it is not allocated by LibTorch, so that LibTorch's
  // count of allocated memory falls.
  std::vector<std::unique_ptr<std::byte, Free>> here_;
  std::vector<torch::Tensor> pinned_;
};

// Observes the ops of this thread between construction and tape(), for tensors on a device of this
// type. Only one may exist at a time per thread.
class TapeWatch {
 public:
  explicit TapeWatch(c10::DeviceType type = c10::DeviceType::CPU);
  ~TapeWatch();
  TapeWatch(const TapeWatch&) = delete;
  TapeWatch& operator=(const TapeWatch&) = delete;

  // Returns what was allocated since construction and still exists, except the storage of
  // `returned`. Ends the observation.
  HostTape tape(const torch::Tensor& returned);

  // For the dispatcher callbacks.
  void seen(const c10::IValue& value, bool made);
  int depth = 0;

 private:
  using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
  void stop();
  c10::DeviceType type_;
  bool watching_ = true;
  std::uint64_t handle_ = 0;
  // By storage; weak references, so that a new storage cannot reuse the address of a freed one.
  std::unordered_map<const c10::StorageImpl*, Weak> found_;
  std::vector<const c10::StorageImpl*> made_;  // those that were allocated, in order
};

}  // namespace polyphony::exec
