// The layers of every kind of module, built from exec/autograd/linear.h, exec/attention/attention.h
// and exec/layers/vocabulary.h.
//   block          x += out(attention(qkv(norm x)));  x += feed_forward(norm x)
//                  norm: LayerNorm or RMSNorm. feed_forward: fc2(GELU(fc1)) with the exact (erf)
//                  GELU, down(glu(gate, up)) (exec/autograd/glu.h), or experts
//                  (exec/layers/experts.h). The module decides on biases, on norms of heads and on
//                  rotary embedding.
//                  Encoders attend bidirectionally within an image (or a window of it) or an audio
//                  clip; decoders attend causally within a sample, with rotary embedding.
//   language_head  norm of the loss rows only, output matrix (the embedding when tied), loss
//   first layers of encoders: exec/layers/patches.h, exec/layers/audio.h
//   projectors: exec/layers/projector.h; diffusion: exec/layers/diffusion.h
//
// A chunk that begins at an inner layer of a language module adds the rows received over model
// edges to the hidden states (DeepStack, arXiv 2406.04334).
// Inner collectives: the list of expand() (shared/chunk/expand.h).
// Sources: ViT, arXiv 2010.11929; Llama 2, arXiv 2307.09288; merging: Qwen2-VL, arXiv 2409.12191.
#pragma once

#include <map>
#include <string>

#include "exec/attention/attention.h"
#include "exec/autograd/linear.h"
#include "exec/layers/balance.h"
#include "exec/work_input.h"
#include "shared/model/model.h"

namespace polyphony::exec {

struct Layer {
  LayerKind kind = LayerKind::decoder_block;
  Recompute recompute = Recompute::none;  // of this layer (recompute_of, shared/chunk/expand.h)
  // Keyed by the part of the name after the block ("experts.down.weight"); outside blocks by the
  // last two parts ("norm.weight").
  std::map<std::string, LocalParameter*> parameters;
  int position = 0;  // index in the module's stack of layers

  LocalParameter* find(const std::string& name) const;  // null when the layer has none
  LocalParameter* at(const std::string& name) const;
};

// The experts chosen for a microbatch's tokens, [T, k] per layer of the chunk. They are chosen once
// and reused when the forward pass is recomputed.
using Choices = std::map<const Layer*, torch::Tensor>;

// How the items of a diffusion module's microbatch are processed.
struct LatentPlan {
  std::vector<std::int64_t> rows;  // rows of each item on this rank
  torch::Tensor time;              // [items, kTimeFeatures]
  torch::Tensor conditioning;      // [C, W], of all ranks; undefined where no block reads it
  std::shared_ptr<const AttentionCalls>
      reads;  // cross-attention, items to their conditioning; null where no block has one
};

// One forward pass over a microbatch. Recomputation reads it again, so it lives until the backward
// pass.
struct Frame {
  const Module& module;
  const WorkInput& data;
  Pass pass;
  SequencePlan sequences;                    // empty where the chunk has no blocks
  const std::vector<torch::Tensor>& inputs;  // of the chunk (exec/layers/chunk.h)
  const std::vector<int>& input_edges;
  std::shared_ptr<const SequenceRows> own;  // sequence parallelism: pass.rows with its own type
  BalancePlan balance;
  Choices& choices;
  std::size_t first_edge = 0;  // index of the first input received over a model edge
  LatentPlan latents;          // for diffusion modules
  SequencePlan windows = {};   // for blocks with windowed attention
  Recipe recipe = Recipe::layout;

  // What the backward pass recomputes of the layer.
  Recompute again(const Layer& layer) const;
};
// Returns the number of rows of a microbatch between the module's blocks, which is also the number
// of rows that leave the module if class tokens are not counted.
std::int64_t sequence_length(const Module& module, const WorkInput& data);
// Plans the attention of full sequences.
SequencePlan plan_sequences(const Module& module, const WorkInput& data,
                            const torch::TensorOptions& format, InnerGroup& context,
                            AttentionWay way);
// As above, for blocks with windowed attention; empty if the module has none.
SequencePlan plan_windows(const Module& module, const WorkInput& data,
                          const torch::TensorOptions& format, InnerGroup& context,
                          AttentionWay way);

// x with the rows that came over edges added, where the chunk has such inputs.
torch::Tensor add_edge_rows(const Frame& frame, const torch::Tensor& x);
// x and the result as at the top of exec/layers/chunk.h.
torch::Tensor run_layer(const Frame& frame, const Layer& layer, const torch::Tensor& x);
// The head without its loss.
torch::Tensor predict_layer(const Frame& frame, const Layer& head, const torch::Tensor& x);

}  // namespace polyphony::exec
