// A profiler's record of some ranks as a graph that can be simulated: kernels and copies of the
// devices, calls of the hosts, and the dependencies between them. Durations are stored separately,
// like a CostTable next to a Program.
//
// A point is a moment: the start or end of a kernel, a launch, or the return from a wait. A point
// is reached when, for each edge to it, the origin of the edge was reached and the edge's duration
// has passed. The kinds of edges:
//
//   stream        kernels of a stream run in the recorded order
//   launch        a kernel starts after the host has launched it, at the earliest after the
//                 shortest such delay of the rank
//   host          the host does one thing after another, in whichever thread (autograd's thread
//                 takes over from the main thread). The edge takes the recorded time since the
//                 previous call. If a call synchronizes, copies, or launches while kQueued launches
//                 are already queued, and the device finished earlier launched work during the
//                 call, the call waits for that work
//   other_stream  waits between streams, if the profiler recorded them (enable_cuda_sync_events).
//                 Otherwise these are inferred, in this order: a collective waits for the
//                 computation launched before it, and the optimizer for the collectives launched
//                 before it (as in PyTorch's process groups and DDP); a kernel that starts more
//                 than kExplained after all its other known predecessors waits for what ended last
//                 on another stream, at most kExplained earlier
//   members       no member of a collective ends before all have entered it (matched across ranks
//                 by step, call, size, group and order)
//   absent        waiting for members that were not recorded: the time that a collective took
//                 beyond the shortest of its shape. This time stays as measured. If the size was
//                 not recorded, the whole time is of this kind
//
// The time between the last of these predecessors and the recorded time of a point is added to all
// its edges, so that the unchanged graph reproduces every recorded time.
//
// Not detected if waits were not recorded: what waits for a collective that ended early (counted in
// the notes). Source of the waits: PyTorch, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp
// (syncStream), reducer.cpp.
#pragma once

#include <string>
#include <vector>

#include "traces/kineto/ranks.h"

namespace polyphony::traces {

// Waking up after an event of another stream takes a few microseconds; files from 2022 have times
// in whole microseconds.
inline constexpr Nanoseconds kExplained = std::chrono::microseconds(20);

// CUDA queues about 1,024 launches; then the next launch waits. (Not documented; copies and events
// also take places in the queue.)
inline constexpr std::int64_t kQueued = 512;

enum class EdgeKind : std::uint8_t {
  kernel,    // from the start of a kernel to its end
  transfer,  // of a collective: from the moment when all members have entered it to its end
  absent,
  members,
  stream,
  other_stream,
  launch,
  host,
  begin  // from the start of the record to a point without recorded predecessors
};

struct GraphEdge {
  std::uint32_t from = 0, to = 0;  // points
  EdgeKind kind = EdgeKind::begin;
  std::uint32_t rank = 0;       // position in RankSet::traces
  std::uint32_t event = kNone;  // kernel, transfer, absent: position in the rank's events
  std::uint32_t meeting = kNone;
};

// One collective, matched across the ranks that recorded it.
struct Meeting {
  struct Member {
    std::uint32_t rank = 0, event = 0;
  };
  std::vector<Member> members;
  bool complete = false;  // all members of the group were recorded
};

struct KernelGraph {
  std::size_t points = 0;                 // in topological order: edges go to larger numbers
  std::vector<GraphEdge> edges;           // by `to`
  std::vector<std::uint32_t> first;       // by point: its first edge; points + 1 entries
  std::vector<std::uint32_t> point_rank;  // by point; kNone: no rank
  std::vector<Meeting> meetings;
  // By rank and event: the points of its start and end.
  std::vector<std::vector<std::uint32_t>> starts, ends;
  std::vector<std::vector<std::int32_t>> windows;  // its step; -1: before the first
  std::vector<std::int64_t> steps;  // steps that all ranks recorded; {0} if no steps are marked
  std::vector<std::string> notes;
};

struct RecordedGraph {
  KernelGraph graph;
  std::vector<Seconds> lags;   // by edge, as recorded
  std::vector<Seconds> times;  // by point, as recorded; 0 is the earliest
};
// Returns the graph of the ranks' records. Throws InputError if the waits of events form a cycle.
RecordedGraph recorded_graph(const RankSet& ranks);

}  // namespace polyphony::traces
