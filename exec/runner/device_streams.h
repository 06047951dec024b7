// The streams of a Program on a device that runs behind the host, and events between its ops.
//   "compute" is the device's default stream; every other stream of the Program has one of its own. An op waits
//   for others through events, on the device: the host only queues. A step begins on every stream behind all that
//   was queued before it, and what is queued on the default stream after it is behind all of it.
//   Written with c10's streams and events, which are CUDA's there and those of tests/exec/queued/ here.
#pragma once

#include <c10/core/Event.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "exec/torch_pch.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony::exec {

class DeviceStreams {
 public:
  explicit DeviceStreams(torch::Device device);

  // A step of `rank` begins; both Program and order as they are until finish().
  void begin(const Program& program, Rank rank);
  c10::Stream of(const Op& op) const { return of_stream_[op.stream.value]; }
  // On the op's stream: behind all ops that it waits for, its beginning, its end. Each op's once, from any thread.
  void start(OpId op);
  void end(OpId op);
  void finish();
  // What has begun on the device and not ended, in brackets; empty: nothing. From any thread.
  std::string unended() const;

  // Of an op that is queued.
  const c10::Event& end_of(OpId op) { return events(op).end; }

  // When the ops of the last step ran, in steady_now(). Waits for the device.
  std::vector<OpTime> times();

 private:
  struct Events {
    c10::Event start, end;
  };
  enum Phase : std::uint8_t { none, begun, queued };
  Events& events(OpId op) { return events_[op.value - first_op_]; }

  torch::Device device_;
  c10::Stream compute_;
  std::map<std::string, c10::Stream> named_;
  const Program* program_ = nullptr;
  Rank rank_;
  std::uint32_t first_op_ = 0;
  std::size_t ops_ = 0;
  std::vector<c10::Stream> of_stream_;  // by StreamId; other ranks' are not looked at
  std::deque<Events> events_;           // by local op; those of earlier steps are used again
  std::vector<std::atomic<std::uint8_t>> phases_;  // by local op, of this step: of its events
};

}  // namespace polyphony::exec
