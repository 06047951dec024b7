// Maps an encoder's rows to a language model's. Concatenates m×m neighboring patches (row-major
// within the cell) or m neighboring audio tokens, [R, H] -> [R/m², m²·H] or [R/m, m·H]; then
// applies fc2(GELU(fc1)), or one matrix, fc.
//   fc1 and fc2 are cut over the tensor-parallel ranks. fc is whole on each; under sequence
//   parallelism each rank applies it to its own rows of the result.
// Source: merging: Qwen2-VL, arXiv 2409.12191; one matrix: LLaVA, arXiv 2304.08485.
#pragma once

#include "exec/frame/frame.h"

namespace polyphony::exec {

torch::Tensor projector(const Frame& frame, const Layer& layer, const torch::Tensor& x);

}  // namespace polyphony::exec
