// The streams of a Program on a device that runs asynchronously to the host, and the events between
// its ops.
//   "compute" is the device's default stream. Where one thread queues everything, messages have a
//   stream for each other rank and direction, so that their number does not grow with the stages of
//   a rank; all other streams of the Program have one each. An op waits for others through events
//   on the device; the host only queues.
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
#include <mutex>
#include <string>
#include <vector>

#include "exec/device/own_stream.h"
#include "exec/torch_pch.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony::exec {

class DeviceStreams {
 public:
  explicit DeviceStreams(torch::Device device);

  // Begins a step of `rank`. The Program and its order must not change until finish().
  // by_peer: of_messages() is used, from one thread.
  void begin(const Program& program, Rank rank, bool by_peer);
  // Returns the stream on which a launch runs (shared/program/queue_order.h). `peer`: the other
  // rank of the launch's messages.
  c10::Stream of(const Op& op) const { return of_stream_[op.stream.value]; }
  c10::Stream of_messages(bool sends, Rank peer);
  // Mark the begin and the end of a launch of an op on its stream. start() also queues the waits
  // for the ops that the op depends on. An op begins with the first of its launches and ends when
  // all of them have ended. From any thread, if every op is one launch.
  void start(OpId op, const c10::Stream& stream, bool first = true);
  // Has later launches of the op wait for what its first launch has queued so far: that its buffer
  // is filled or packed.
  void prepared(OpId op, const c10::Stream& stream);
  void end(OpId op, const c10::Stream& stream, bool last = true);
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
  const c10::Stream& named(const std::string& name);

  mutable std::mutex mutex_;  // of begin() and unended()
  torch::Device device_;
  c10::Stream compute_;
  std::map<std::string, OwnStream> named_;
  std::map<OpId, c10::Event> prepared_;
  std::map<OpId, std::vector<c10::Stream>> parts_;        // of ops with launches yet to come
  std::deque<std::pair<OpId, c10::Event>> later_starts_;  // of all launches but an op's first
  const Program* program_ = nullptr;
  Rank rank_;
  std::uint32_t first_op_ = 0;
  std::size_t ops_ = 0;
  std::vector<c10::Stream> of_stream_;  // by StreamId; unused for messages and other ranks
  std::deque<Events> events_;           // by local op; reused in later steps
  std::vector<c10::Stream> ran_on_;     // by local op that has ended: the stream that its end is on
  std::vector<std::atomic<std::uint8_t>> phases_;  // by local op: state of its events in this step
};

}  // namespace polyphony::exec
