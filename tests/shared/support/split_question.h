// A layout whose split into stages is tested, and the memory of a split.
#pragma once

#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/bound.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {

// 8 samples on 4 ranks of a CPU.
struct SplitQuestion {
  Scenario scenario = examples::small_on_cpu(4, 8);
  Layout layout;
  HardwareProfile profile = *find_profile("cpu-core-roofline");
};

// Returns the memory of the worst rank with these blocks of the last module, or of the chain.
inline Bytes memory_of(const SplitQuestion& q, const std::vector<int>& blocks) {
  Screen screen(q.scenario, q.profile, typical_batch(q.scenario));
  Layout layout = q.layout;
  layout.modules.back().blocks = blocks;
  return screen.footprint(layout).memory;
}

}  // namespace polyphony
