// The input and output layers for image patches. The input layer embeds the patches, puts a class
// token before each image if the module has one, and adds learned positions unless the module is
// rotary. The output layer removes class tokens after the last norm.
//   P patches, n images: [P, H] between blocks, [P + n, H] with class tokens
//
//   Under sequence parallelism a rank embeds the patches among its own rows of the axis with class
//   tokens. The axis without them is split differently, so when class tokens are removed the rows
//   of all ranks are gathered and split again.
// Source: ViT, arXiv 2010.11929.
#pragma once

#include "exec/frame/frame.h"

namespace polyphony::exec {

torch::Tensor patch_embedding(const Frame& frame, const Layer& layer);
torch::Tensor drop_class_tokens(const Frame& frame, const torch::Tensor& x);

}  // namespace polyphony::exec
