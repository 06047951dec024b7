// The layers of every kind of module, built from exec/autograd/linear.h, exec/attention/attention.h
// and exec/layers/vocabulary.h.
//   block          x += out(attention(qkv(norm x)));  x += feed_forward(norm x)
//                  norm: LayerNorm or RMSNorm. feed_forward: fc2(GELU(fc1)) with the exact (erf)
//                  GELU, down(glu(gate, up)) (exec/autograd/glu.h), or experts
//                  (exec/experts/experts.h). The module decides on biases, on norms of heads and on
//                  rotary embedding.
//                  Encoders attend bidirectionally within an image (or a window of it) or an audio
//                  clip; decoders attend causally within a sample, with rotary embedding.
//   language_head  norm of the loss rows only, output matrix (the embedding when tied), loss
//   first layers of encoders: exec/layers/patches.h, exec/layers/audio.h
//   projectors: exec/layers/projector.h; diffusion: exec/layers/diffusion.h
//
// Inner collectives: the list of expand() (shared/chunk/expand.h).
// Sources: ViT, arXiv 2010.11929; Llama 2, arXiv 2307.09288; merging: Qwen2-VL, arXiv 2409.12191.
#pragma once

#include "exec/frame/frame.h"
#include "exec/predicted.h"

namespace polyphony::exec {

// x and the result as at the top of exec/chunk/chunk.h.
torch::Tensor run_layer(const Frame& frame, const Layer& layer, const torch::Tensor& x);
// Returns what the head predicts, instead of the sum of its losses.
Predicted predict_layer(const Frame& frame, const Layer& head, const torch::Tensor& x);

}  // namespace polyphony::exec
