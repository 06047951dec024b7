// Step times and the numbers they are published as.
//   FLOPs of a step as the frameworks count them, B samples of s tokens, L layers of width h,
//   vocabulary V:  model 72·B·L·s·h²·(1 + s/6h + V/12Lh)   (arXiv 2104.04473 §5.1 without
//   recomputation)
//       hardware, full recomputation: 96·B·L·s·h²·(1 + s/6h + V/16Lh); selective: the model's and
//       one more forward of the attention scores, 72·B·L·s·h²·(1 + s/3h + …) (arXiv 2205.05198,
//       App. A)
//   for plain layers with four matrices of attention; else by weights: 6·B·s·(weights used +
//   L·s·A·D, causal pairs counted whole)
#pragma once

#include "sim/published/case.h"

namespace polyphony::sim {

Flops published_flops(const PublishedRow& row, const Module& module, bool hardware);
// A metric of time: seconds of a step that it means, and the metric that a step time means.
Seconds step_of(const PublishedRow& row, const Module& module, double value);
double value_of(const PublishedRow& row, const Module& module, Seconds step);

}  // namespace polyphony::sim
