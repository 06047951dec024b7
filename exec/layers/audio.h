// The first layer of an audio encoder, built from exec/autograd/linear.h.
//   GELU(conv2(GELU(conv1 frames))) + fixed positions
//   Both convolutions span 3 frames, with zeros beyond a clip's ends; the second has stride 2, so
//   2n frames give n tokens. Each is one matrix multiplication of the rows [previous frame | frame
//   | next frame]. Under sequence parallelism each rank computes its own tokens, from the frames
//   around them.
//
// Position t: sin and cos of t · 10000^(−i/(H/2 − 1)), i < H/2, sines first.
// Source: Whisper, arXiv 2212.04356, section 2.2, and its published code.
#pragma once

#include "exec/frame/frame.h"

namespace polyphony::exec {

// Returns the embedded tokens [rows, H] of the clips in `frame.data`.
torch::Tensor audio_embedding(const Frame& frame, const Layer& layer);

}  // namespace polyphony::exec
