// In which order one thread queues a rank's ops on a device (exec/runner/device_streams.h): each behind those that it
// waits for, those before it on its stream and, where it receives from its own rank, what sends that.
//   Of those that may come: first what other ranks wait for (messages, collectives, copies), then compute ops. So a
//   host that waits inside an op has queued all that its peers may need to get there; how early a receive may come,
//   whose buffer is there from then on, the Program says (its slots).
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

  // The next op; nothing when all are queued.
  std::optional<OpId> next();

 private:
  using Local = std::uint32_t;  // position among the rank's ops
  using First = std::priority_queue<Local, std::vector<Local>, std::greater<>>;

  void behind(Local before, Local after);
  void ready(Local op) { (computes_[op] ? compute_ : others_).push(op); }

  std::uint32_t first_;
  std::vector<std::uint32_t> missing_;     // ops before it that are not queued
  std::vector<std::vector<Local>> after_;  // those that it is missing to
  std::vector<bool> computes_;
  std::size_t left_;
  First others_, compute_;
};

}  // namespace polyphony::exec
