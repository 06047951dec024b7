// Conversion between step times and the metrics in which they are published (tokens/s, TFLOP/s,
// MFU).
//
// FLOPs of a step are counted as the frameworks do. For B samples of s tokens, L layers of width h,
// vocabulary V, and GPT layers (four attention matrices of equal size, MLP of width 4h):
//   model      72·B·L·s·h²·(1 + s/6h + V/12Lh), attention over the whole square
//              (arXiv 2104.04473, appendix, without recomputation)
//   hardware   full recomputation, one more forward of the blocks:
//              96·B·L·s·h²·(1 + s/6h + V/16Lh)
//              selective recomputation: 72·B·L·s·h²·(1 + s/3h + V/12Lh), which counts the repeated
//              attention as in arXiv 2205.05198, App. A
//
// For other layers, FLOPs are counted by weights, and attention over half of the square:
// 6·B·s·(weights used + L·s·A·D) for A heads of width D, as in Megatron-LM's training.py since
// 2025; with latent attention L·s·A·(D + rotary/2). Under full recomputation the factor is 8 in
// place of 6, except for the output layer.
#pragma once

#include "sim/published/case.h"

namespace polyphony::sim {

// Returns the number of weights that one token uses in the feed-forward part of a block, without
// the router; the mean over blocks.
double feed_forward_weights(const Module& module);
// Returns the FLOPs of a step by the formulas above; `hardware`: with recomputation.
Flops published_flops(const PublishedRow& row, const Module& module, bool hardware);
// For a row whose metric is one of time: converts a value of the metric to the step time, and back.
Seconds step_of(const PublishedRow& row, const Module& module, double value);
double value_of(const PublishedRow& row, const Module& module, Seconds step);

}  // namespace polyphony::sim
