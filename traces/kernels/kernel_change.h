// One thing changed in a recorded graph: which times become others, by what. All that is not named here stays as
// it was measured.
//   faster    times of a class over a stated number. A class: of kernels (kineto/device_trace.h), all of them
//             ("compute", "memory"), "collective" or one of them ("collective all_reduce"), "host", "launch", "gaps"
//   links     rates of all links; of a collective what moves bytes changes, its latency stays
//   groups    a process group of another size, over the same links and the same arrays: the volume over each
//             link goes as (n - 1)/n, hops as n - 1
//   degraded  a rank's device: its kernels; its link: collectives that it is in, at the slowest member's
//   fused     kernels of a class that follow each other on a stream become one that lasts as long as the longest
//             of them (each reads and writes all that passes); the others' launches go, and what the host did for them
// Latency and bytes of a measured transfer: the rate at which the cost model (shared/cost/collectives.h: NCCL's
// protocols, one node) takes as long as it took is found; the model's ratio between then and now is what it is
// scaled by. Of a broadcast, a reduce or a message, and where the size was not recorded, all of it is bytes.
// Not modelled: latencies between nodes, a group that grows over slower links, shards that become smaller.
#pragma once

#include "shared/hardware/cluster.h"
#include "traces/kernels/kernel_graph.h"
#include "traces/replay/measured_step.h"

namespace polyphony::traces {

struct GroupSize {
  std::string group;  // its name, without its members
  int ranks = 0;
};
struct KernelChange {
  std::vector<Speedup> faster{};
  double links = 1;
  std::vector<GroupSize> groups{};
  std::vector<Degraded> degraded{};  // device and link
  std::vector<std::string> fused{};
  bool changes() const {
    return !faster.empty() || links != 1 || !groups.empty() || !degraded.empty() || !fused.empty();
  }
};

struct ChangedLags {
  std::vector<Seconds> lags;    // by edge
  std::vector<Origin> origins;  // by edge: measured, or scaled
};
// InputError: a class, a group or a rank that is not there, a group whose size was not recorded.
ChangedLags changed_lags(const RecordedGraph& recorded, const RankSet& ranks,
                         const KernelChange& change);

std::string label(const GraphEdge& edge, const RankSet& ranks);
// Without its members: "dp" of "dp [0, 1]".
std::string group_name(const CollectiveShape& shape);

}  // namespace polyphony::traces
