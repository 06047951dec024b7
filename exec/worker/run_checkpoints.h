// The checkpoints of a training run: written while training goes on, or waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/checkpoint/background_save.h"
#include "exec/worker/control.h"
#include "exec/worker/train.h"
#include "exec/worker/waiting.h"

namespace polyphony::exec {

class RunCheckpoints {
 public:
  RunCheckpoints(Transport& transport, Control& control, const TrainOptions& options,
                 const Program& structure)
      : transport_(transport),
        control_(control),
        options_(options),
        structure_(structure),
        folder_(RunPaths{options.out}.checkpoints()),
        save_(transport) {}

  // What a checkpoint has, and files that must have reached the disk before it counts.
  struct Contents {
    RankState state;
    KeptCheckpoints keep;
    std::vector<std::string> synced_first;
  };

  // Returns whether the run keeps checkpoints and has none of this step.
  bool lacks(std::int64_t step) const {
    return !options_.out.empty() && options_.keep_checkpoints > 0 && newest_ != step;
  }
  // Tells that the run has a checkpoint of this step, and needs no other.
  void has(std::int64_t step) { newest_ = step; }
  // Returns the step of the newest checkpoint that has begun or that the run goes on from.
  std::optional<std::int64_t> newest() const { return newest_; }

  // Returns whether it is time for a checkpoint: on rank 0, which decides for all, and then makes
  // its folder, so that the ranks need not meet for that once they have agreed. False elsewhere.
  bool due(std::int64_t step);
  // Begins the checkpoint of a step. `agreed`: the ranks have met since due() returned true.
  // Collective.
  void begin(std::int64_t step, Contents contents, bool agreed);
  // Writes the checkpoint of a step, and returns when it is published. Collective.
  void write(std::int64_t step, const Contents& contents);

  // Return whether a checkpoint has begun and is not known to be published (the same on all ranks),
  // and whether this rank's thread works on it.
  bool begun() const { return save_.begun(); }
  bool works() const { return save_.works(); }
  // Goes on with a checkpoint that no rank's thread works on. Collective.
  void go_on();
  // Waits until the checkpoint is published. Collective.
  void finish();
  // Returns when the state may change. May be called on any thread.
  void wait_for_copy();
  // Returns how long this rank's training has waited since the last call.
  Seconds take_waited() { return waited_.take(); }

 private:
  bool has_room(Bytes copies);

  Transport& transport_;
  Control& control_;
  const TrainOptions& options_;
  const Program& structure_;
  std::string folder_;
  Waiting waited_;
  std::unique_ptr<PartialCheckpoint> made_;  // by due()
  std::optional<bool> room_;                 // for copies
  std::optional<std::int64_t> newest_;
  Seconds last_ = steady_now();  // when the last one began
  BackgroundSave save_;
};

}  // namespace polyphony::exec
