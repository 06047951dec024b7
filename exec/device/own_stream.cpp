#include "exec/device/own_stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#if defined(POLYPHONY_NCCL)
#include "exec/device/nccl.h"
#endif

namespace polyphony::exec {

namespace {

using Kind = std::tuple<c10::DeviceType, c10::DeviceIndex, Priority>;

// Streams are never destroyed: the caching allocator may still record events on them.
struct Released {
  std::mutex mutex;
  std::map<Kind, std::vector<c10::Stream>> streams;
};
Released& released() {
  static auto* const all = new Released;  // users may outlive main()
  return *all;
}

Kind kind_of(torch::Device device, Priority priority) {
  return {device.type(), device.index(), priority};
}

c10::Stream fresh(torch::Device device, Priority priority) {
#if defined(POLYPHONY_NCCL)
  if (device.is_cuda()) return new_gpu_stream(device, priority == Priority::urgent);
#endif
  // As in CUDA, lower numbers are more urgent.
  return c10::impl::VirtualGuardImpl(device.type())
      .getNewStream(device, priority == Priority::urgent ? -1 : 0);
}

c10::Stream taken(torch::Device device, Priority priority) {
  {
    const std::scoped_lock lock(released().mutex);
    std::vector<c10::Stream>& free = released().streams[kind_of(device, priority)];
    if (!free.empty()) {
      const c10::Stream last = free.back();
      free.pop_back();
      return last;
    }
  }
  return fresh(device, priority);
}

}  // namespace

OwnStream::OwnStream(torch::Device device, Priority priority)
    : device_(device), priority_(priority), stream_(taken(device, priority)) {}

OwnStream::~OwnStream() {
  const std::scoped_lock lock(released().mutex);
  released().streams[kind_of(device_, priority_)].push_back(stream_);
}

}  // namespace polyphony::exec
