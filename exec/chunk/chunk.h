// One rank's share of one chunk (a range of layers of one module): its parameters, and the forward
// and backward passes of microbatches.
//   Boundary activations are [rows, width], replicated over the tensor-parallel ranks. Under
//   sequence parallelism each rank has its own rows of them (shared/work/row_shares.h).
//     vision     patches in -> [P, H]
//     projector  [P, H] -> [P / merge², H_language]
//     language   [image tokens, H] at the first layer, [T, H] inside; the head returns a scalar
//                loss (sum of token losses × loss_scale)
//     diffusion  [L, H] inside, with the conditioning [C, W] as an input of every chunk; the head
//                returns a scalar loss (sum of squared errors × latent_scale × loss_weight)
//
//   One forward pass makes one saved graph (the saved activations), used by one backward pass;
//   several microbatches may be in flight.
//
//   Every layer with weights is a torch::autograd::Function
//   whose backward returns the input gradient and queues {x, dy}. The weight gradients are computed
//   from the queue, either at once (backward) or later as an op of their own (backward_input, then
//   backward_weight).
//
// Parameters, how they are cut, and their initial values: shared/chunk/parameters.h. The inner
// collectives are exactly those in the list of expand().
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/attention_calls/attention_calls.h"
#include "exec/autograd/inner_groups.h"
#include "exec/parameters/init.h"
#include "exec/predicted.h"
#include "exec/work_input.h"
#include "shared/chunk/expand.h"
#include "shared/chunk/parameters.h"
#include "shared/model/model.h"

namespace polyphony::exec {

struct ChunkOptions {
  torch::Dtype dtype = torch::kFloat32;
  Fp8Scaling fp8 = Fp8Scaling::off;  // of the blocks' GEMMs with weights
  std::uint64_t seed = 1;
  // Published weights that the parameters begin with; null: they begin at random. Low-rank pairs do
  // so in any case. Needed by the constructor only.
  const PretrainedModule* pretrained = nullptr;
  bool trainable = true;  // keeps gradients for the parameters that train (Parameter::trained)
  // Allocates them; false: the caller does, before the first backward pass. They have 0 elements
  // until then.
  bool allocate_gradients = true;
  bool input_grad = true;  // the backward pass returns the gradients of the boundary inputs
  bool edge_grad = true;   // among them those of inputs received over model edges
  bool sequence_parallel = false;
  int tp_pieces = 1;  // of ModuleLayout: chunks of rows in tensor-parallel GEMMs
  AttentionWay attention;
  int expert_tp = 0;                   // tensor-parallel ranks that cut one expert: 1, or 0 for all
  std::vector<int> input_edges = {0};  // model edges of the inputs received over one, in order
  // What the backward pass recomputes (exec/autograd/recompute.h) in the blocks at the positions
  // `recomputed` of the module's stack: the whole forward pass, or its attention.
  Recompute recompute = Recompute::none;
  LayerRange recomputed = kAllLayers;
  bool perturb = false;  // tests: biases and norm weights start away from 0 and 1, so that their
                         // gradients are tested
  torch::Device device = torch::kCPU;
};

class Chunk {
 public:
  // The communicators must outlive the chunk.
  Chunk(const Module& module, LayerRange layers, const Communicators& communicators,
        const ShardIndex& shard, const ChunkOptions& options);
  ~Chunk();
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  // Runs the forward pass of microbatch `work` and returns the boundary activations or the loss.
  // `inputs` and the tensors in `data` must stay unchanged until the microbatch's backward pass.
  //
  // `inputs`: in the order of chunk_inputs() (shared/plan/links.h): the output of the previous
  // layers, then the rows received over model edges (for token_embedding the rows that are not
  // text; any of them may have 0 rows). Empty for a chunk that starts at the data. An undefined
  // tensor is no input.
  //
  // `recipe`: what the backward pass recomputes, overriding the options.
  torch::Tensor forward(std::uint64_t work, const std::vector<torch::Tensor>& inputs,
                        const WorkInput& data, Recipe recipe = Recipe::layout);
  torch::Tensor forward(std::uint64_t work, const torch::Tensor& input, const WorkInput& data) {
    return forward(work, std::vector<torch::Tensor>{input}, data);
  }
  // Runs the backward pass and returns the gradient of each input, undefined where it is not
  // wanted. `output_grad` is undefined for a chunk that ends in the loss, and where no gradient is
  // returned.
  std::vector<torch::Tensor> backward(std::uint64_t work, const torch::Tensor& output_grad);
  // The two halves of backward(): input gradients, then weight gradients.
  std::vector<torch::Tensor> backward_input(std::uint64_t work, const torch::Tensor& output_grad);
  void backward_weight(std::uint64_t work);
  // Frees saved activations without a backward pass (frozen chunks, evaluation).
  void drop(std::uint64_t work);
  // For evaluation: returns the predictions and losses of each loss row instead of the sum of
  // losses. The chunk must end in the head.
  Predicted predict(const std::vector<torch::Tensor>& inputs, const WorkInput& data);

  std::vector<LocalParameter>& parameters();
  // Returns the collectives issued inside forward and backward since the last call, in order. For
  // the check against expand().
  std::vector<InnerCollective> take_issued();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace polyphony::exec
