// Multi-head latent attention of a decoder block: the keys and values of all heads are computed
// from one narrow row per token, plus a rotated part of the keys that all heads share.
//   q   norm(x Q↓) Q↑, or x Q↑ without a query rank;   c, r = x C↓;   k, v of a head = norm(c) C↑
//
//   Down-projections and their norms are whole on every tensor-parallel rank and are applied to the
//   rank's own rows. Their results [T, rank] are gathered before the up-projections, which are cut
//   by heads, and are saved gathered, so that the backward pass gathers nothing.
//
// Saved and sent bytes: shared/layers (latent kernels and sizes).
// Source: DeepSeek-V2, arXiv 2405.04434, §2.1.
#pragma once

#include "exec/frame/frame.h"

namespace polyphony::exec {

// normed [rows, H] -> [rows, H].
torch::Tensor latent_attention(const Frame& frame, const Layer& layer, const torch::Tensor& normed);

}  // namespace polyphony::exec
