// Plans window attention for images: each image is cut into squares of window × window patches from
// its upper left corner (smaller at the right and lower edges), and each square is a sequence of
// its own.
// Source: Qwen2.5-VL, arXiv 2502.13923, section 2.1.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/attention/attention.h"
#include "shared/patch_grid.h"

namespace polyphony::exec {

SequencePlan plan_windows(const std::vector<PatchGrid>& images, std::int64_t window,
                          torch::Device device);

}  // namespace polyphony::exec
