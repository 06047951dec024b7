// The order in which one thread queues a rank's ops on a device (exec/runner/device_streams.h). An
// op comes after the ops that it waits for, after the ops before it on its stream and, if it
// receives from its own rank, after the op that sends.
//   Among the ops that may come next: first those that other ranks wait for (messages, collectives,
//   copies), then compute ops. So when the host blocks inside an op, everything that its peers may
//   need in order to get there has been queued. How early a receive may come, whose buffer exists
//   from then on, is limited by the Program (its slots).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "shared/program/program.h"

namespace polyphony::exec {

class QueueOrder {
 public:
  QueueOrder(const Program& program, Rank rank);

  // Returns the next op; nothing when all have been returned.
  std::optional<OpId> next();

 private:
  using Local = std::uint32_t;  // position among the rank's ops
  using First = std::priority_queue<Local, std::vector<Local>, std::greater<>>;

  void behind(Local before, Local after);
  void ready(Local op) { (computes_[op] ? compute_ : others_).push(op); }

  std::uint32_t first_;
  std::vector<std::uint32_t> missing_;     // per op: predecessors that are not queued yet
  std::vector<std::vector<Local>> after_;  // per op: its successors
  std::vector<bool> computes_;
  std::size_t left_;
  First others_, compute_;
};

}  // namespace polyphony::exec
