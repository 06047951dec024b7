// Positions of a sample's tokens in the language module, for rotary embedding: int64.
//   [T]     0, 1, 2, …
//   [3, T]  time, row and column, when the module has rope_sections. Text and audio: all three the
//           next free position. An image of h × w merged tokens: time the next free position p,
//           rows p … p + h − 1, columns p … p + w − 1; what follows starts at p + max(h, w).
// Source: Qwen2-VL, arXiv 2409.12191, section 2.1.
#pragma once

#include "exec/torch_pch.h"
#include "shared/data/data.h"
#include "shared/model/model.h"

namespace polyphony::exec {

torch::Tensor rope_positions(const Model& model, const Sample& sample);

}  // namespace polyphony::exec
