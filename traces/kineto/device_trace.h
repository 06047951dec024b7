// What a profiler recorded of one rank's device: every kernel, copy and fill with its class, its step and
// who launched it. The one value that whatever works on others' traces reads; kineto.h makes it.
//   Times are whole nanoseconds after `origin`, on the rank's own clock until ranks.h has aligned them.
//   A device event's step is that of its launch on the host, as HolisticTraceAnalysis has it: devices run
//   behind, so that an event may end after its step's annotation has.
// Not kept: host operators that launch nothing, stacks of Python functions, flows, counters; of the host's calls
// all but launches and those that may wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/units.h"

namespace polyphony::traces {

using Nanoseconds = std::chrono::nanoseconds;

// What a device event does. `unknown`: no table knows its name (kernel_class.h); it is listed.
enum class KernelClass : std::uint8_t {
  gemm,
  convolution,
  attention,
  normalisation,
  softmax,  // and losses
  elementwise,
  reduction,
  embedding,
  data_movement,  // inside a device, by kernels: gathers, concatenations, transposed copies
  sort,
  optimizer,
  layers,  // a whole op of our own executor's, of many kernels
  unknown,
  collective,  // sends and receives, too
  to_device,   // copies
  to_host,
  on_device,  // and between devices
  fill
};
constexpr KernelClass last_of(KernelClass) { return KernelClass::fill; }
const char* name(KernelClass kind);

// HolisticTraceAnalysis's three: all that is neither of the others is computation.
enum class DeviceWork : std::uint8_t { compute, communication, memory };
constexpr DeviceWork last_of(DeviceWork) { return DeviceWork::memory; }
constexpr DeviceWork work_of(KernelClass kind) {
  if (kind < KernelClass::collective) return DeviceWork::compute;
  return kind == KernelClass::collective ? DeviceWork::communication : DeviceWork::memory;
}
const char* name(DeviceWork work);

inline constexpr std::uint32_t kNone = 0xffffffff;

struct DeviceEvent {
  Nanoseconds start{}, duration{};
  Nanoseconds launched{};        // when the host asked for it; start, where that was not recorded
  std::uint32_t name = 0;        // of DeviceTrace::names
  std::uint32_t op = kNone;      // of names: the innermost host operator that launched it
  std::uint32_t detail = kNone;  // of products (gemm) or collectives (collective)
  std::int32_t stream = 0;
  std::int32_t step = -1;  // of DeviceTrace::steps; -1: launched outside all of them
  KernelClass kind = KernelClass::unknown;
  Bytes bytes{};  // copies and fills
  Nanoseconds end() const { return start + duration; }
  bool operator==(const DeviceEvent&) const = default;
};

// batch times [m, k] by [k, n].
struct MatrixProduct {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  auto operator<=>(const MatrixProduct&) const = default;
};

enum class CollectiveCall : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  send_receive,
  other
};
constexpr CollectiveCall last_of(CollectiveCall) { return CollectiveCall::other; }
const char* name(CollectiveCall call);

// `bytes` as nccl-tests counts them: the whole array, on the rank where it is largest.
struct CollectiveShape {
  CollectiveCall call = CollectiveCall::other;
  std::optional<Bytes> bytes = {};
  int ranks = 0;           // of the group; 0: not recorded
  std::string group = {};  // its name; empty: not recorded
  auto operator<=>(const CollectiveShape&) const = default;
};
// Bus bandwidth over bytes ÷ time. Source: nccl-tests, doc/PERFORMANCE.md.
double bus_factor(CollectiveCall call, int ranks);

// An annotation of the host that stands for one training step.
struct StepRange {
  std::string name;
  std::int64_t number = 0;  // N of ProfilerStep#N
  Nanoseconds start{}, duration{};
  bool operator==(const StepRange&) const = default;
};

// A call in which the host may wait: for the device, for one stream, for an event, for a copy; a launch that
// lasts (kLongLaunch), for room in the queue of launches.
enum class WaitsFor : std::uint8_t { device, stream, event, copy, queue };
// A launch takes some microseconds.
inline constexpr Nanoseconds kLongLaunch = std::chrono::microseconds(20);
struct HostWait {
  Nanoseconds start{}, duration{};
  WaitsFor what = WaitsFor::device;
  Nanoseconds end() const { return start + duration; }
  bool operator==(const HostWait&) const = default;
};

// What the host has asked of two streams: whatever is launched on `stream` after `asked` starts after all that was
// launched on `on` before `recorded`.
struct StreamWait {
  std::int32_t stream = 0, on = 0;
  Nanoseconds asked{}, recorded{};
  bool operator==(const StreamWait&) const = default;
};

struct DeviceTrace {
  std::string file;
  bool ours = false;  // one of our trace files (traces/format)
  std::optional<int> rank, world;
  std::string backend;                 // of torch.distributed
  std::optional<Nanoseconds> unix_of;  // Unix time of origin, where the file tells it
  Nanoseconds origin{};                // of the file's own clock, at 0 here
  std::string device;                  // its name
  std::vector<std::string> names;
  std::vector<MatrixProduct> products;
  std::vector<CollectiveShape> collectives;
  std::vector<StepRange> steps;     // by start
  std::vector<DeviceEvent> events;  // by start, then stream
  std::vector<HostWait> waits;      // by start
  // Empty where the profiler was not asked for them (enable_cuda_sync_events).
  std::vector<StreamWait> stream_waits;
  // Events of the file by category: how many were read, how many of them are none of a device's.
  std::map<std::string, std::int64_t> read;
  std::vector<std::string> notes;  // what was mended, and what is missing
};

}  // namespace polyphony::traces
