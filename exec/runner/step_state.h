// One rank's view of one Program while a step runs: its ops by stream, which have ended, its
// boundary tensors, the first error.
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

// Thrown inside a rank to leave its streams after another stream of it has failed.
struct Stopped {};

class StepState {
 public:
  StepState(const Program& program, Rank rank);

  const Program& program() const { return program_; }
  const std::map<std::string, std::vector<OpId>>& streams() const {
    return streams_;
  }  // by stream name

  // Blocks until the ops that `op` waits for have ended; throws Stopped when the step has failed.
  void wait_for(const Op& op);
  void finish(const OpTime& time);
  // Keeps the first error and releases every waiting stream.
  void fail(std::exception_ptr error);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  void rethrow();

  // exec/runner/agreed_names.h
  std::uint64_t tag(MessageId message) const { return tags_[message.value]; }
  // The boundary tensor of a buffer of this rank; empty until written.
  torch::Tensor& tensor(BufferId buffer);
  // Of a buffer of the host's.
  HostTape& host_tape(BufferId buffer);
  // Where what the forward keeps goes; null: it stays.
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
      tensors_;  // shape fixed after construction; entries ordered by the ops' waits
  std::unordered_map<std::uint32_t, HostTape> host_tapes_;    // likewise
  std::unordered_map<std::uint32_t, std::uint32_t> away_of_;  // by tape, of those that go to a host
  std::atomic<bool> failed_{false};
  std::mutex error_mutex_;
  std::exception_ptr error_;  // protected by error_mutex_
};

}  // namespace polyphony::exec
