// Step times and the numbers they are published as.
//   FLOPs of a step as the frameworks count them, B samples of s tokens, L layers of width h, vocabulary V:
//       model      72·B·L·s·h²·(1 + s/6h + V/12Lh)
//                  attention over whole squares (arXiv 2104.04473, appendix, without recomputation)
//       hardware   full recomputation, one more forward of the blocks: 96·B·L·s·h²·(1 + s/6h + V/16Lh)
//                  selective: 72·B·L·s·h²·(1 + s/3h + V/12Lh), as arXiv 2205.05198, App. A counts
//                  what attention does again
//   for plain layers with four matrices of attention; else by weights, and attention over half of
//   the square: 6·B·s·(weights used + L·s·A·D), as Megatron-LM's training.py counts since 2025
//   (with latent attention L·s·A·(D + rotary/2)); full recomputation: 8 in place of 6 but for the
//   head
#pragma once

#include "sim/published/case.h"

namespace polyphony::sim {

// Weights that a token meets in the feed-forward part of a block, without the router: the mean over
// blocks.
double feed_forward_weights(const Module& module);
Flops published_flops(const PublishedRow& row, const Module& module, bool hardware);
// A metric of time: seconds of a step that it means, and the metric that a step time means.
Seconds step_of(const PublishedRow& row, const Module& module, double value);
double value_of(const PublishedRow& row, const Module& module, Seconds step);

}  // namespace polyphony::sim
