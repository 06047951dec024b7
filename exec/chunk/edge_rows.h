// Adds rows received over model edges to the hidden states at an inner layer of a language module
// (DeepStack, arXiv 2406.04334).
#pragma once

#include "exec/frame/frame.h"

namespace polyphony::exec {

// x with the rows that came over edges added, where the chunk has such inputs.
torch::Tensor add_edge_rows(const Frame& frame, const torch::Tensor& x);

}  // namespace polyphony::exec
