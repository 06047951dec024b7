// What the layers of a chunk get in a forward pass over one microbatch: their parameters (Layer),
// and the microbatch with what is planned once for all blocks (Frame).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/attention/attention.h"
#include "exec/autograd/linear.h"
#include "exec/frame/balance_plan.h"
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
  const std::vector<torch::Tensor>& inputs;  // of the chunk (exec/chunk/chunk.h)
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

}  // namespace polyphony::exec
