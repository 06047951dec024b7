// Saves checkpoints while training goes on.
//   begin()          at the end of a step: rank 0 makes the folder; the rest is the work of a
//                    thread of the lowest priority, which copies the rank's state, and writes and
//                    syncs its file
//   wait_for_copy()  before the next update changes the state
//   go_on()          at the end of later steps at which works() is false on all ranks. The first
//                    call gathers checksums, and rank 0's thread publishes the checkpoint; the
//                    second call ends it
// A checkpoint counts when it is published: a run that is killed before that resumes from the one
// before. The copies take as much host memory as the rank's part of the checkpoint.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <utility>

#include "exec/checkpoint/checkpoint_writer.h"
#include "exec/runner/idle_thread.h"
#include "exec/transport/communicator.h"

namespace polyphony::exec {

class BackgroundSave {
 public:
  explicit BackgroundSave(Transport& transport) : transport_(transport) {}
  // Gives up what is not published.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  // Returns whether a checkpoint has begun and is not known to be published; the same on all ranks.
  bool begun() const { return stage_ != Stage::none; }
  struct How {
    bool copies = true;  // without them the next update waits for the file
    bool meets = true;   // begin() calls a barrier, as none was since rank 0 made the folder
  };
  // Begins a checkpoint. Requires !begun(). `how` is the same on all ranks. Collective if the ranks
  // must meet.
  void begin(std::unique_ptr<CheckpointWriter> writer, How how);
  void begin(std::unique_ptr<CheckpointWriter> writer) { begin(std::move(writer), How{}); }
  // Returns when the state may change. May be called on any thread, and between checkpoints.
  void wait_for_copy();
  // Returns whether wait_for_copy() would wait.
  bool copies() const { return copying_.load(std::memory_order_acquire) != 0; }
  // Returns whether this rank's background thread is running.
  bool works() const { return !thread_.free(); }
  // Advances a checkpoint by one stage, where works() is false on all ranks. Throws if this rank
  // could not write its part; on rank 0 if any could not, or if publishing failed. Collective.
  void go_on();
  // Waits until the checkpoint is published. Collective.
  void finish();

 private:
  enum class Stage : std::uint8_t { none, writing, publishing };

  Transport& transport_;
  Stage stage_ = Stage::none;
  std::unique_ptr<CheckpointWriter> writer_;
  std::exception_ptr failure_;  // of publishing
  std::atomic<std::uint32_t> copying_{0};
  IdleThread thread_{[] {}};  // last member: works on the others
};

}  // namespace polyphony::exec
