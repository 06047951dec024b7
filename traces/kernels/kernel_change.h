// Changes a recorded kernel graph: scales some of its durations. Everything else stays as measured.
//
//   faster    divides the times of a class by a factor. A class is a kernel class
//             (kineto/device_trace.h), all kernels of a kind ("compute", "memory"), "collective" or
//             one of them ("collective all_reduce"), "host", "launch" or "gaps"
//   links     scales the rates of all links; of a collective, the part that moves bytes changes,
//             its latency stays
//   groups    gives a process group another size, over the same links and with the same arrays: the
//             volume over each link is proportional to (n - 1)/n, the number of hops to n - 1
//   degraded  slows a rank's device (its kernels) or its link (the collectives in which the rank
//             takes part run at the rate of the slowest member)
//   fused     merges consecutive kernels of a class on a stream into one that lasts as long as the
//             longest of them (each reads and writes all the data). The launches of the other
//             kernels disappear, with the time that the host spent on them
//
// A measured transfer is divided into latency and bytes as follows. We find the rate at which the
// cost model (shared/cost/collectives.h: NCCL's protocols, one node) predicts the measured time;
// the measured time is then scaled by the ratio of the model's times after and before the change.
// For a broadcast, a reduce or a message, and if the size was not recorded, the whole time scales
// with the rate.
//
// Does not model latencies between nodes, a group that grows over slower links, or shards that
// become smaller.
#pragma once

#include "shared/hardware/cluster.h"
#include "traces/kernels/kernel_graph.h"
#include "traces/replay/measured_step.h"

namespace polyphony::traces {

struct GroupSize {
  std::string group;  // name of the group, without its members
  int ranks = 0;
};
struct KernelChange {
  std::vector<Speedup> faster{};
  double links = 1;
  std::vector<GroupSize> groups{};
  std::vector<Degraded> degraded{};  // `device` and `link` factors are used
  std::vector<std::string> fused{};
  bool changes() const {
    return !faster.empty() || links != 1 || !groups.empty() || !degraded.empty() || !fused.empty();
  }
};

struct ChangedLags {
  std::vector<Seconds> lags;    // by edge
  std::vector<Origin> origins;  // by edge: measured or scaled
};
// Returns the durations of all edges after the change. Throws InputError if a class, a group or a
// rank does not occur in the graph, or if the size of a changed group was not recorded.
ChangedLags changed_lags(const RecordedGraph& recorded, const RankSet& ranks,
                         const KernelChange& change);

// Returns the class of an edge, for tables and for `faster`.
std::string label(const GraphEdge& edge, const RankSet& ranks);
// Returns the name of the group without its members: "dp" for "dp [0, 1]".
std::string group_name(const CollectiveShape& shape);

}  // namespace polyphony::traces
