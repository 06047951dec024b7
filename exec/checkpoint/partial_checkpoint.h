// The folder of a checkpoint that is not complete.
#pragma once

#include <cstdint>
#include <string>

namespace polyphony::exec {

// Removes the folder on destruction unless it has been published.
class PartialCheckpoint {
 public:
  // Makes the folder of the incomplete checkpoint of `step`, and removes incomplete checkpoints
  // that another run left in `folder`. Throws InputError if it cannot be created.
  PartialCheckpoint(const std::string& folder, std::int64_t step);
  ~PartialCheckpoint();
  PartialCheckpoint(const PartialCheckpoint&) = delete;
  PartialCheckpoint& operator=(const PartialCheckpoint&) = delete;

  // From here on the folder is the checkpoint. An existing checkpoint of the same step is swapped
  // with it and removed.
  void publish();

 private:
  std::string folder_, whole_, path_;
  bool published_ = false;
};

}  // namespace polyphony::exec
