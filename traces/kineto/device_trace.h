// A profiler's record of one rank's device: every kernel, copy and fill with its class, its step
// and the host operator that launched it. All analyses of profiler traces read this value; kineto.h
// creates it.
//
// Times are integer nanoseconds since `origin`, on the rank's own clock until ranks.h aligns the
// clocks. The step of a device event is the step in which the host launched it, as in
// HolisticTraceAnalysis: devices run behind the host, so an event may end after the annotation of
// its step.
//
// Not stored: host operators that launch nothing, Python stacks, flows, counters; of the host's
// calls only launches and calls that may wait are stored.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/enum_names.h"
#include "shared/units.h"

namespace polyphony::traces {

using polyphony::name;  // of the enums below

using Nanoseconds = std::chrono::nanoseconds;

// Class of a device event. `unknown`: the name is in no table (kernel_class.h); such kernels are
// listed in the output.
enum class KernelClass : std::uint8_t {
  gemm,
  convolution,
  attention,
  normalisation,
  softmax,  // and loss functions
  elementwise,
  reduction,
  embedding,
  data_movement,  // within a device, by kernels: gathers, concatenations, transposed copies
  sort,
  optimizer,
  layers,  // a whole op of our own executor, which consists of many kernels
  unknown,
  collective,  // including sends and receives
  to_device,   // copy
  to_host,     // copy
  on_device,   // copy within a device or between devices
  fill
};
constexpr auto names(KernelClass) {
  return names_of<KernelClass>("gemm", "convolution", "attention", "normalisation", "softmax",
                               "elementwise", "reduction", "embedding", "data_movement", "sort",
                               "optimizer", "layers", "unknown", "collective", "to_device",
                               "to_host", "on_device", "fill");
}

// The three kinds of HolisticTraceAnalysis. Everything that is neither communication nor memory is
// computation.
enum class DeviceWork : std::uint8_t { compute, communication, memory };
constexpr auto names(DeviceWork) {
  return names_of<DeviceWork>("compute", "communication", "memory");
}
constexpr DeviceWork work_of(KernelClass kind) {
  if (kind < KernelClass::collective) return DeviceWork::compute;
  return kind == KernelClass::collective ? DeviceWork::communication : DeviceWork::memory;
}

inline constexpr std::uint32_t kNone = 0xffffffff;

struct DeviceEvent {
  Nanoseconds start{}, duration{};
  Nanoseconds launched{};        // time of its launch on the host; `start` if not recorded
  std::uint32_t name = 0;        // index into DeviceTrace::names
  std::uint32_t op = kNone;      // index into names: the innermost host operator that launched it
  std::uint32_t detail = kNone;  // index into products (gemm) or collectives (collective)
  std::int32_t stream = 0;
  std::int32_t step = -1;  // index into DeviceTrace::steps; -1: launched outside of all steps
  KernelClass kind = KernelClass::unknown;
  Bytes bytes{};  // of copies and fills
  Nanoseconds end() const { return start + duration; }
  bool operator==(const DeviceEvent&) const = default;
};

// A GEMM: `batch` products of [m, k] by [k, n].
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
constexpr auto names(CollectiveCall) {
  return names_of<CollectiveCall>("all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                  "broadcast", "reduce", "send_receive", "other");
}

// `bytes` as in nccl-tests: the size of the whole array, on the rank where it is largest.
struct CollectiveShape {
  CollectiveCall call = CollectiveCall::other;
  std::optional<Bytes> bytes = {};
  int ranks = 0;           // size of the group; 0: not recorded
  std::string group = {};  // name of the group; empty: not recorded
  auto operator<=>(const CollectiveShape&) const = default;
};
// Returns the ratio of the bus bandwidth to bytes ÷ time. Source: nccl-tests, doc/PERFORMANCE.md.
double bus_factor(CollectiveCall call, int ranks);

// A host annotation that marks one training step.
struct StepRange {
  std::string name;
  std::int64_t number = 0;  // N of ProfilerStep#N
  Nanoseconds start{}, duration{};
  bool operator==(const StepRange&) const = default;
};

// What a host call may wait for: the device, one stream, an event, a copy, or (a launch that takes
// longer than kLongLaunch) a free place in the launch queue.
enum class WaitsFor : std::uint8_t { device, stream, event, copy, queue };
// A launch normally takes a few microseconds.
inline constexpr Nanoseconds kLongLaunch = std::chrono::microseconds(20);
struct HostWait {
  Nanoseconds start{}, duration{};
  WaitsFor what = WaitsFor::device;
  Nanoseconds end() const { return start + duration; }
  bool operator==(const HostWait&) const = default;
};

// A wait between two streams: everything launched on `stream` after `asked` starts after everything
// that was launched on `on` before `recorded`.
struct StreamWait {
  std::int32_t stream = 0, on = 0;
  Nanoseconds asked{}, recorded{};
  bool operator==(const StreamWait&) const = default;
};

struct DeviceTrace {
  std::string file;
  bool ours = false;     // a trace file written by Polyphony (traces/format)
  bool on_host = false;  // of a rank without a device: the events are the host's (host_work.h)
  std::optional<int> rank, world;
  bool numbered = false;  // the file does not state its rank, which is only its place among others
  std::string backend;    // backend of torch.distributed
  std::optional<Nanoseconds> unix_of;  // Unix time of `origin`, if the file states it
  // Of our profiles: what is to be added to the rank's clock to get rank 0's, measured in the run.
  Nanoseconds clock_offset{};
  Nanoseconds origin{};  // time on the file's clock that is 0 here
  std::string device;    // name of the device
  std::vector<std::string> names;
  std::vector<MatrixProduct> products;  // one of each call
  std::vector<CollectiveShape> collectives;
  std::vector<StepRange> steps;     // by start
  std::vector<DeviceEvent> events;  // by start, then stream
  std::vector<HostWait> waits;      // by start
  // Empty if the profiler did not record them (enable_cuda_sync_events).
  std::vector<StreamWait> stream_waits;
  // Number of events in the file, by category.
  std::map<std::string, std::int64_t> read;
  std::vector<std::string> notes;  // what was repaired, and what is missing
};

}  // namespace polyphony::traces
