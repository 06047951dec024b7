// One rank's state of one Program while a step runs: its ops by stream, which ops have ended, its
// boundary tensors, and the first error.
#pragma once

#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "exec/runner/host_tape.h"
#include "exec/torch_pch.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony::exec {

// Thrown inside a rank to leave its streams after another of its streams has failed.
struct Stopped {};

class StepState {
 public:
  StepState(const Program& program, Rank rank);

  const Program& program() const { return program_; }
  const std::map<std::string, std::vector<OpId>>& streams() const {
    return streams_;
  }  // by stream name

  // Blocks until the ops that `op` waits for have ended. Throws Stopped if the step has failed.
  void wait_for(const Op& op);
  void finish(const OpTime& time);
  // Records the first error and releases every waiting stream.
  void fail(std::exception_ptr error);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  void rethrow();

  // The tag of a message that all ranks agree on (exec/runner/agreed_names.h).
  std::uint64_t tag(MessageId message) const { return tags_[message.value]; }
  // The boundary tensor of a buffer of this rank; empty until written.
  torch::Tensor& tensor(BufferId buffer);
  // The offloaded activations of a buffer in host memory.
  HostTape& host_tape(BufferId buffer);
  // Where a forward op's saved activations are offloaded to; null if they stay on the device.
  HostTape* away(const Op& forward);
  std::vector<OpTime> take_times();

 private:
  void add_away(const Op& op);

  const Program& program_;
  std::uint32_t first_op_;
  std::map<std::string, std::vector<OpId>> streams_;
  std::unique_ptr<std::atomic<std::uint32_t>[]>
      state_;  // by local op: 0 not yet, 1 ended, 2 stopped
  std::size_t ops_;
  std::vector<std::uint32_t> tags_;
  std::vector<OpTime> times_;  // by local op; each entry written by its own stream only
  std::unordered_map<std::uint32_t, torch::Tensor>
      tensors_;  // no entry is added after construction; accesses are ordered by the ops' waits
  std::unordered_map<std::uint32_t, HostTape> host_tapes_;    // likewise
  std::unordered_map<std::uint32_t, std::uint32_t> away_of_;  // by tape buffer: its host buffer
  std::atomic<bool> failed_{false};
  std::mutex error_mutex_;
  std::exception_ptr error_;  // protected by error_mutex_
};

}  // namespace polyphony::exec
