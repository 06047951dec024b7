// Writes a step as Chakra execution traces, one graph per rank, which ASTRA-sim and other
// simulators read. They can then simulate the same workload. File format: traces/README.md.
//
//   compute       COMP_NODE. With inner collectives: alternating COMP_NODEs and COMM_COLL_NODEs
//                 (op_parts.h)
//   update        COMP_NODE
//   collective    COMM_COLL_NODE; comm_size as in NCCL's calls: the bytes that one rank contributes
//   exchange      one COMM_SEND_NODE or COMM_RECV_NODE per message; comm_tag is the message id at
//                 both ends. After several messages a COMP_NODE of zero length on the CPU
//   local copy    of a rank to itself: a COMP_NODE on the CPU with which both ops end
//   copy          to host memory MEM_STORE_NODE, back MEM_LOAD_NODE
//
// Dependencies are data_deps (Chakra's feeders before the third read no others): the previous op of
// the stream, and the ops that the op waits for.
//
// Times are those of the Timeline; a message counts from the moment at which both ends have
// started. Starts and ends are rounded, not durations, so that a walk along the graph ends when the
// Timeline does, to the nanosecond (duration_nanos) and microsecond. The part of a collective that
// a stack overlaps with compute is not in its duration; its bytes are complete.
//
// Sources: Chakra, arXiv 2305.14516, and its schema et_def.proto 0.0.4 (field numbers, attributes);
// ASTRA-sim's workload and collective code (meaning of comm_size, process groups).
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
  // Keeps references to all arguments. The Timeline must be complete and simulated: every op starts
  // when its predecessors have ended. `cluster` and `profile` divide an op's time among its parts.
  ExecutionTraces(const Program& program, const Timeline& timeline, const Cluster& cluster,
                  const HardwareProfile& profile);

  // Returns the contents of a rank's file, which ASTRA-sim expects under the name
  // "PREFIX.<rank>.et".
  std::string rank(Rank rank);
  // Returns ASTRA-sim's file of process groups: {"<pg_name>": [ranks]}. ASTRA-sim reserves the name
  // 0 for the world, so the name of a group is its id plus one.
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
