// Positions of a sample's tokens in the language module, for rotary embedding: int64.
//   [T]     0, 1, 2, …
//   [3, T]  time, row and column, if the module has rope_sections. For text and audio all three are
//           the next free position. For an image of h × w merged tokens: time is the next free
//           position p, rows are p … p + h − 1, columns p … p + w − 1; the next item starts at p +
//           max(h, w).
// Source: Qwen2-VL, arXiv 2409.12191, section 2.1.
#pragma once

#include "exec/torch_pch.h"
#include "shared/data/data.h"
#include "shared/model/model.h"

namespace polyphony::exec {

torch::Tensor rope_positions(const Model& model, const Sample& sample);

}  // namespace polyphony::exec
