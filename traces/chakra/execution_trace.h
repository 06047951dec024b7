// A step as Chakra execution traces, which ASTRA-sim and others read: one graph a rank, so that another simulator
// can say what it makes of the same work. Format: traces/README.md.
//   compute       COMP_NODE; with collectives inside, a COMP_NODE and a COMM_COLL_NODE of each in turn (op_parts.h)
//   update        COMP_NODE
//   collective    COMM_COLL_NODE; comm_size as NCCL's calls have it: what a rank gives in
//   exchange      a COMM_SEND_NODE or COMM_RECV_NODE a message, comm_tag the message's id at both ends; of several,
//                 a COMP_NODE of no length on the processor after them
//   hand-over     of a rank to itself: a COMP_NODE on the processor, which both its ops end with
//   copy          to the host's memory MEM_STORE_NODE, back MEM_LOAD_NODE
// Dependencies are data_deps (feeders before Chakra's third read no others): the op before in its stream, and what it waits for.
// Times are the Timeline's, of messages from when both ends have started: starts and ends are rounded, not
// lengths, so that a walk along the graph ends where the Timeline does, to the nanosecond (duration_nanos) and microsecond.
// What a stack hides of a collective is not in its duration, its bytes are whole.
// Sources: Chakra, arXiv 2305.14516, and its schema et_def.proto 0.0.4 (field numbers, attributes); ASTRA-sim's
// workload and collective code (what comm_size is, which groups there are).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "traces/chakra/op_parts.h"

namespace polyphony::traces {

class ExecutionTraces {
 public:
  // All are kept by reference. The Timeline is one that was played: of every op, an op starting when what it follows
  // has ended. `cluster`, `profile`: what shares out an op's time among what is inside it.
  ExecutionTraces(const Program& program, const Timeline& timeline, const Cluster& cluster,
                  const HardwareProfile& profile);

  // The file of a rank: "PREFIX.<rank>.et" to ASTRA-sim.
  std::string rank(Rank rank);
  // Its file of process groups: {"<pg_name>": [ranks]}. Name 0 is the world's there, so ours are a
  // group's id and one.
  std::string groups() const;

 private:
  friend class RankGraph;
  const Program& program_;
  const Timeline& timeline_;
  const HardwareProfile& profile_;
  std::uint64_t hash_;
  OpCutter cutter_;
  std::vector<OpId> sender_, receiver_;  // by message
};

}  // namespace polyphony::traces
