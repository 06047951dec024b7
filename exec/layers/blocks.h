// The layers of every module kind, from exec/autograd/linear.h, exec/attention/attention.h and exec/layers/vocabulary.h.
//   block          x += out(attention(qkv(norm x)));  x += feed_forward(norm x)
//                  norm: LayerNorm or RMSNorm; feed_forward: fc2(GELU(fc1)), exact (erf) GELU,
//                  down(glu(gate, up)) (exec/autograd/glu.h), or experts (exec/layers/experts.h); biases, norms of heads and
//                  rotation as the module says
//                  encoders: bidirectional within an image (or a window of it) or a clip; decoders:
//                  causal within a sample, rotated
//   language_head  norm of the loss rows only, output matrix (the embedding when tied), loss
//   the first layers of encoders: exec/layers/patches.h, exec/layers/audio.h; projectors: exec/layers/projector.h
//   A chunk that begins at an inner layer of a language module adds the rows that come over edges
//   to the hidden states (DeepStack, arXiv 2406.04334). Diffusion: exec/layers/diffusion.h.
// Inner collectives: expand()'s list (shared/chunk/expand.h).
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
  // By what follows the block in the name, "experts.down.weight"; outside blocks by the last two
  // parts, "norm.weight".
  std::map<std::string, LocalParameter*> parameters;
  int position = 0;  // in the module's stack

  LocalParameter* find(const std::string& name) const;  // null when the layer has none
  LocalParameter* at(const std::string& name) const;
};

// The experts that a work item's tokens visit, [T, k] by layer of the chunk: chosen once, then the
// same when the forward runs again.
using Choices = std::map<const Layer*, torch::Tensor>;

// The items of a diffusion module.
struct LatentPlan {
  std::vector<std::int64_t> rows;  // of each item, on this rank
  torch::Tensor time;              // [items, kTimeFeatures]
  torch::Tensor conditioning;      // [C, W], all of it; undefined where no block reads it
  std::shared_ptr<const AttentionCalls>
      reads;  // of the items' rows to their conditioning's; null: likewise
};

// One forward over a work item. What recomputation runs again reads it, too: it lives until the
// backward.
struct Frame {
  const Module& module;
  const WorkInput& data;
  Pass pass;
  SequencePlan sequences;                    // empty where the chunk has no blocks
  const std::vector<torch::Tensor>& inputs;  // of the chunk (exec/layers/chunk.h)
  const std::vector<int>& input_edges;
  std::shared_ptr<const SequenceRows> own;  // sequence parallelism: pass.rows, by its own type
  BalancePlan balance;
  Choices& choices;
  std::size_t first_edge = 0;  // of the inputs, the first that comes over an edge
  LatentPlan latents;          // diffusion modules
  SequencePlan windows = {};   // of the blocks that attend inside windows
  Recipe recipe = Recipe::layout;

  // What the backward makes again of the layer.
  Recompute again(const Layer& layer) const;
};
// Rows of a work item between the module's blocks, and of what leaves it but for class tokens.
std::int64_t sequence_length(const Module& module, const WorkInput& data);
SequencePlan plan_sequences(const Module& module, const WorkInput& data,
                            const torch::TensorOptions& format, InnerGroup& context,
                            AttentionWay way);
// Of blocks that attend inside windows; empty without.
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
