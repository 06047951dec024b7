// What a run knows of its bad steps (exec/worker/bad_steps.h), as its checkpoints store it.
#pragma once

#include <cstdint>
#include <vector>

namespace polyphony {

struct BadStepState {
  struct Seen {
    std::int64_t step = 0;
    double loss = 0, gradient_norm = 0;  // finite
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> seen;        // by the newest steps, in order; empty: spikes are not judged
  std::int64_t skipped = 0;      // steps in a row whose update was left out, up to now
  std::int64_t rewinds = 0;      // since the run began
  std::int64_t passed_over = 0;  // batches: step n trains on batch n + passed_over of the data
  bool operator==(const BadStepState&) const = default;
};

}  // namespace polyphony
