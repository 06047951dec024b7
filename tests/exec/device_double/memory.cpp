// The memory of the queued device, allocated as LibTorch's caching allocator allocates a GPU's:
// memory that was freed on a stream may be reused on that stream at once, even if other streams
// still read it, unless the tensor was recorded on them.
#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "tests/exec/device_double/streams.h"

namespace polyphony::exec::testing::queued {

namespace {

constexpr std::size_t kRound = 512;

struct MemoryBlock {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  c10::Stream stream;
  std::vector<c10::Stream> used;  // by others than its own
  std::int64_t allocated = 0, released = 0;
  std::atomic<std::int64_t> overwritten{0};
};
struct Waiting {
  MemoryBlock* block;
  std::vector<Event> until;
};

struct Memory {
  std::mutex mutex;
  std::map<std::pair<c10::StreamId, std::size_t>, std::vector<MemoryBlock*>> free;
  std::vector<Waiting> waiting;
  std::map<const void*, MemoryBlock*> held;
  // Bytes that are not available, because tensors or streams still use them; and bytes of all
  // blocks.
  c10::CachingAllocator::Stat active, reserved;
  std::int64_t blocks = 0;
};
Memory& memory(c10::DeviceIndex device) {
  static auto* const all = new std::array<Memory, kQueuedDevices>;
  return all->at(static_cast<std::size_t>(device));
}

// Under the lock.
void give_back(Memory& at, MemoryBlock* block) {
  at.active.decrease(block->bytes);
  ++block->released;
  queue(block->stream.device(), block->stream.id())
      .push(
          [block] {
            ++block->overwritten;
            std::memset(block->data, 0xff, block->bytes);  // NaN, -1
          },
          false);
  at.free[{block->stream.id(), block->bytes}].push_back(block);
}

void look_at_waiting(Memory& at) {
  std::erase_if(at.waiting, [&](const Waiting& one) {
    for (const Event& event : one.until)
      if (!reached(event)) return false;
    give_back(at, one.block);
    return true;
  });
}

void let_go(void* data) {
  if (data == nullptr) return;
  // The device is not known here; a look at few maps.
  for (c10::DeviceIndex device = 0; device < kQueuedDevices; ++device) {
    Memory& at = memory(device);
    const std::scoped_lock lock(at.mutex);
    const auto found = at.held.find(data);
    if (found == at.held.end()) continue;
    MemoryBlock* const block = found->second;
    at.held.erase(found);
    if (block->used.empty()) return give_back(at, block);
    Waiting waiting{block, {}};
    for (const c10::Stream& stream : block->used) {
      waiting.until.push_back(std::make_shared<EventState>());
      record(waiting.until.back(), stream);
    }
    block->used.clear();
    at.waiting.push_back(std::move(waiting));
    return;
  }
}

class QueuedAllocator final : public c10::DeviceAllocator {
 public:
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override { use_on(data, stream); }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    Memory& at = memory(device);
    const std::scoped_lock lock(at.mutex);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.active_bytes[kAll] = at.active;
    stats.reserved_bytes[kAll] = at.reserved;
    stats.segment[kAll].current = at.blocks;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex device) override {
    Memory& at = memory(device);
    const std::scoped_lock lock(at.mutex);
    at.active.reset_peak();
    at.reserved.reset_peak();
  }
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::DeviceIndex device = current_device();
    const c10::Device where(kQueued, device);
    if (bytes == 0) return {nullptr, nullptr, &let_go, where};
    const c10::StreamId stream = current_stream(device);
    const std::size_t rounded = (bytes + kRound - 1) / kRound * kRound;
    Memory& at = memory(device);
    wait_if_strict(device);
    std::unique_lock lock(at.mutex);
    look_at_waiting(at);
    const auto fits = [&] {
      return byte_limit() == 0 ||
             at.active.current + static_cast<std::int64_t>(rounded) <= byte_limit();
    };
    if (!fits()) {
      lock.unlock();
      wait_for_all(device);
      lock.lock();
      look_at_waiting(at);
      TORCH_CHECK_WITH(OutOfMemoryError, fits(), "queued device ", device,
                       " is out of memory: ", at.active.current, " bytes of ", byte_limit(),
                       " are used, ", rounded, " more were asked for");
    }
    std::vector<MemoryBlock*>& free = at.free[{stream, rounded}];
    MemoryBlock* block = nullptr;
    if (!free.empty()) {
      block = free.back();
      free.pop_back();
    } else {
      auto* const data = static_cast<std::byte*>(std::aligned_alloc(kRound, rounded));
      if (data == nullptr) throw std::bad_alloc();
      std::memset(data, 0xff, rounded);
      block = new MemoryBlock{data, rounded, c10::Stream(c10::Stream::UNSAFE, where, stream), {}};
      at.reserved.increase(rounded);
      ++at.blocks;
    }
    at.active.increase(rounded);
    at.held[block->data] = block;
    ++block->allocated;
    return {block->data, block->data, &let_go, where};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &let_go; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

// The host's, which copies read when they run.
struct Pinned {
  std::mutex mutex;
  std::map<const std::byte*, std::size_t> blocks;
};
Pinned& pinned() {
  static auto* const one = new Pinned;
  return *one;
}
void let_go_pinned(void* data) {
  if (data == nullptr) return;
  const std::scoped_lock lock(pinned().mutex);
  pinned().blocks.erase(static_cast<const std::byte*>(data));
  std::free(data);
}

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    auto* const data = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 64) / 64 * 64));
    if (data == nullptr) throw std::bad_alloc();
    const std::scoped_lock lock(pinned().mutex);
    pinned().blocks[data] = bytes;
    return {data, data, &let_go_pinned, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &let_go_pinned; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

}  // namespace

c10::Allocator& pinned_allocator() {
  static auto* const one = new PinnedAllocator;
  return *one;
}

bool is_pinned(const void* data) {
  const std::scoped_lock lock(pinned().mutex);
  auto after = pinned().blocks.upper_bound(static_cast<const std::byte*>(data));
  if (after == pinned().blocks.begin()) return false;
  --after;
  return static_cast<const std::byte*>(data) <= after->first + after->second;
}

std::optional<Life> life_of(c10::DeviceIndex device, const void* data, std::size_t bytes) {
  Memory& at = memory(device);
  const std::scoped_lock lock(at.mutex);
  auto after = at.held.upper_bound(data);
  if (after == at.held.begin()) return std::nullopt;
  const MemoryBlock& block = *(--after)->second;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(data) - block.data);
  if (offset + bytes > block.bytes) return std::nullopt;
  return Life{&block, block.allocated, block.released};
}

bool overwritten(const Life& life) {
  return static_cast<const MemoryBlock*>(life.block)->overwritten > life.released;
}

c10::Allocator& allocator() {
  static auto* const one = new QueuedAllocator;
  return *one;
}

void use_on(const c10::DataPtr& data, const c10::Stream& stream) {
  if (data.get() == nullptr || seeded() == SeededFault::freed_early) return;
  Memory& at = memory(data.device().index());
  const std::scoped_lock lock(at.mutex);
  MemoryBlock* const block = at.held.at(data.get_context());
  if (block->stream != stream) block->used.push_back(stream);
}

}  // namespace polyphony::exec::testing::queued
