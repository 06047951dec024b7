// The streams of a Program on a device that runs asynchronously to the host, and the events between
// its ops.
//   "compute" is the device's default stream; every other stream of the Program has a device stream
//   of its own. An op waits for others through events on the device; the host only queues.
//   A step begins on every stream after all work queued before the step. Work queued on the default
//   stream after the step runs after all of the step.
//   Written with c10's streams and events, which are CUDA's on GPUs and those of
//   tests/exec/device_double/ in tests.
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

  // Begins a step of `rank`. The Program and its order must not change until finish().
  void begin(const Program& program, Rank rank);
  c10::Stream of(const Op& op) const { return of_stream_[op.stream.value]; }
  // Mark an op's begin and end on its stream; start() also queues the waits for the ops it depends
  // on. Call each once per op, from any thread.
  void start(OpId op);
  void end(OpId op);
  void finish();
  // Returns, in brackets, the ops that have begun on the device and not ended; empty if there are
  // none. From any thread.
  std::string unended() const;

  // Returns the end event of an op that is queued.
  const c10::Event& end_of(OpId op) { return events(op).end; }

  // Returns when the ops of the last step ran, in steady_now(). Waits for the device.
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
  std::vector<c10::Stream> of_stream_;             // by StreamId; unused for other ranks' streams
  std::deque<Events> events_;                      // by local op; reused in later steps
  std::vector<std::atomic<std::uint8_t>> phases_;  // by local op: state of its events in this step
};

}  // namespace polyphony::exec
