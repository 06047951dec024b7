// The first layer of an audio encoder, from exec/autograd/linear.h.
//   GELU(conv2(GELU(conv1 frames))) + fixed positions: convolutions over 3 frames with zeros beyond
//   a clip's ends, the second with stride 2: 2n frames, n tokens; each is a product of rows [frame
//   before | frame | frame after] with one matrix. Under sequence parallelism a rank makes its own
//   tokens, from the frames around them.
// Position t: sin and cos of t · 10000^(−i/(H/2 − 1)), i < H/2, sines first.
// Source: Whisper, arXiv 2212.04356, section 2.2, and its published code.
#pragma once

#include "exec/layers/blocks.h"

namespace polyphony::exec {

torch::Tensor audio_embedding(const Frame& frame, const Layer& layer);

}  // namespace polyphony::exec
