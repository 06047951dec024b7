// Computes the angles by which rotary positions rotate queries and keys: [rows, D/2], fp64, for
// frequency i < D/2.
//   text     position · θ^(−2i/width), where width is that of the rotated part; with rope_sections
//            the position is the token's time, row or column, depending on the section of i
//   patches  row · θ^(−4i/D) for i < D/4, then the same for the column; class tokens get angle 0
// Sources: Su et al., arXiv 2104.09864; sections, rows and columns: Qwen2-VL, arXiv 2409.12191.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/torch_pch.h"
#include "shared/model/model.h"
#include "shared/patch_grid.h"

namespace polyphony::exec {

// Returns the angles of text tokens. `positions`: see WorkInput::positions. `base` is θ.
// `extended`: whether the frequencies change by Module::rope_scaling; those of blocks with windows
// and a base of their own stay.
torch::Tensor text_angles(const Module& module, const torch::Tensor& positions, std::int64_t width,
                          double base, bool extended);
// Returns the angles of image patches, one row per row of the module's blocks, class tokens
// included.
torch::Tensor patch_angles(const Module& module, const std::vector<PatchGrid>& images,
                           torch::Device device);

}  // namespace polyphony::exec
