// What a profiler recorded of some ranks as a graph that can be played: kernels and copies of the devices, calls
// of their hosts, and what each had to wait for. Durations stand beside it, as a CostTable stands beside a Program.
//   Points are moments (a kernel's start, its end, a launch, a return from a wait); a point is reached as soon as,
//   for all edges to it, their beginning was reached and their time has passed. Each edge is there because of
//     stream        kernels of a stream run in the order in which they were recorded
//     launch        a kernel starts after the host has asked for it: by the rank's shortest such time at least
//     host          a host does one thing after another, whichever thread does it (autograd's takes over from
//                   the main one): the recorded time from what it had done last. Where it synchronises, copies,
//                   or launches while kQueued launches wait already, and the device ended what was launched
//                   before during the call, it waits for that
//     other_stream  where the profiler recorded waits between streams (enable_cuda_sync_events): those. Elsewhere,
//                   in this order: a collective waits for the computation launched before it, and the optimizer
//                   for the collectives launched before it (as PyTorch's process groups and DDP do); a kernel that starts
//                   more than kExplained after all else that is known of it, for what ended last on another stream,
//                   at most kExplained before
//     members       of a collective: none ends before all have come (matched over ranks by step, call, size, group
//                   and order)
//     absent        waiting for members that were not recorded: what a collective took beyond the shortest of its
//                   shape, as long as it was. Where its size was not recorded, all of it
//   What is left between the last of these and a point's recorded time goes to all its edges, so that the graph
//   played as it is gives back every recorded time.
// Not seen where waits were not recorded: who waits for a collective that ended early (counted in the notes).
// Source of the waits: PyTorch, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp (syncStream), reducer.cpp.
#pragma once

#include <string>
#include <vector>

#include "traces/kineto/ranks.h"

namespace polyphony::traces {

// Waking up after an event of another stream takes a few microseconds, times of 2022's files are whole ones.
inline constexpr Nanoseconds kExplained = std::chrono::microseconds(20);

// CUDA queues about 1,024 launches, then the next one waits. (Not documented; copies and events take places, too.)
inline constexpr std::int64_t kQueued = 512;

enum class EdgeKind : std::uint8_t {
  kernel,    // from its start to its end
  transfer,  // of a collective: from when all have come to its end
  absent,
  members,
  stream,
  other_stream,
  launch,
  host,
  begin  // from the first moment of all to what waits for nothing recorded
};

struct GraphEdge {
  std::uint32_t from = 0, to = 0;  // points
  EdgeKind kind = EdgeKind::begin;
  std::uint32_t rank = 0;       // position in RankSet::traces
  std::uint32_t event = kNone;  // of kernel, transfer, absent: position in its events
  std::uint32_t meeting = kNone;
};

// A collective of the ranks that recorded it.
struct Meeting {
  struct Member {
    std::uint32_t rank = 0, event = 0;
  };
  std::vector<Member> members;
  bool complete = false;  // nobody is absent
};

struct KernelGraph {
  std::size_t points = 0;                 // what a point follows has a smaller number
  std::vector<GraphEdge> edges;           // by `to`
  std::vector<std::uint32_t> first;       // by point: its first edge; one more at the end
  std::vector<std::uint32_t> point_rank;  // by point; kNone: of none
  std::vector<Meeting> meetings;
  // By rank and event.
  std::vector<std::vector<std::uint32_t>> starts, ends;
  std::vector<std::vector<std::int32_t>> windows;  // the step it belongs to; -1: before the first
  std::vector<std::int64_t> steps;  // numbers of the steps that all ranks have; none told: one, 0
  std::vector<std::string> notes;
};

struct RecordedGraph {
  KernelGraph graph;
  std::vector<Seconds> lags;   // by edge, as recorded
  std::vector<Seconds> times;  // by point, as recorded; 0: the first of all
};
// InputError: events that wait for each other in a circle.
RecordedGraph recorded_graph(const RankSet& ranks);

}  // namespace polyphony::traces
