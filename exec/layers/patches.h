// The patches of images, on their way in: embedded, behind a class token where the module has one,
// with learned positions where it is not rotary; and out: class tokens leave with the last norm.
//   P patches, n images: [P, H] between blocks, [P + n, H] with class tokens, each before its image
//   Under sequence parallelism a rank embeds the patches among its own rows of that axis. Its rows
//   of the axis without class tokens are others: all ranks' rows come together to be dealt again.
// Source: ViT, arXiv 2010.11929.
#pragma once

#include "exec/layers/blocks.h"

namespace polyphony::exec {

torch::Tensor patch_embedding(const Frame& frame, const Layer& layer);
torch::Tensor drop_class_tokens(const Frame& frame, const torch::Tensor& x);

}  // namespace polyphony::exec
