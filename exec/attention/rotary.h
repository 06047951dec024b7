// Angles by which rotary positions turn queries and keys: [rows, D/2], fp64, for frequency i < D/2.
//   text     position · θ^(−2i/width), width of the part that turns; with rope_sections the
//            position is the time, row or column of the token, by the section that i falls in
//   patches  row · θ^(−4i/D) for i < D/4, then column likewise; a class token is not turned
// Sources: Su et al., arXiv 2104.09864; sections, rows and columns: Qwen2-VL, arXiv 2409.12191.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/torch_pch.h"
#include "shared/model/model.h"

namespace polyphony::exec {

// `positions` as WorkInput::positions.
torch::Tensor text_angles(const Module& module, const torch::Tensor& positions, std::int64_t width,
                          double base);
// Rows as blocks of the module see them: with its class tokens.
torch::Tensor patch_angles(const Module& module, const std::vector<std::int64_t>& image_lengths,
                           torch::Device device);

}  // namespace polyphony::exec
