// The layers of a diffusion module: a transformer over latent patches, trained by flow matching.
//   n items, L latent tokens, p = latent_channels·patch² features per token, t the time of an item
//   latent_embedding  x_t = (1 − t)·noise + t·latent; linear; + fixed sines and cosines of the
//                     position: of row and column if the item is a square, else of the token's
//                     index
//   modulation        time_out(silu(time_in(features of t))): [n, parts·H], 256 features
//   diffusion_block   x += gate₁∘out(attention(qkv(adaptive norm x)))   bidirectional in an item
//                     x += cross_out(attention(cross_query(LayerNorm x), conditioning of the item))
//                     x += gate₂∘fc2(GELU(fc1(adaptive norm x)))        biases everywhere
//   diffusion_head    adaptive norm, linear to p, Σ (prediction − (latent − noise))² · scale
//
// Inner collectives: the list of expand(). Sources: blocks and positions, Peebles and Xie, arXiv
// 2212.09748; norm before the cross-attention, Wan, arXiv 2503.20314; loss, Lipman et al., arXiv
// 2210.02747, with straight paths (Liu et al., arXiv 2209.03003).
#pragma once

#include "exec/frame/frame.h"

namespace polyphony::exec {

// Plans the items of a microbatch.
// `own`: null without sequence parallelism. With it every row between layers belongs to one rank,
// except the conditioning's.
// `conditioning`: [C, W], this rank's rows; undefined where no block reads it. It is gathered once.
// Its gradient is summed over the tensor-parallel ranks once, after all blocks of the chunk have
// added theirs.
LatentPlan plan_latents(const WorkInput& data, const Pass& pass, const SequenceRows* own,
                        const torch::Tensor& conditioning);

torch::Tensor latent_embedding(const Frame& frame, const Layer& layer);
torch::Tensor diffusion_block(const Frame& frame, const Layer& layer, const torch::Tensor& x);
torch::Tensor diffusion_head(const Frame& frame, const Layer& layer, const torch::Tensor& x);

}  // namespace polyphony::exec
