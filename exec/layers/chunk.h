// One rank's share of one chunk (a layer range of one module): parameters, and forward and backward
// of work items.
//   Activations at its boundary are [rows, width], replicated over the tensor-parallel ranks; under
//   sequence parallelism each has its own rows of them (shared/work/row_shares.h).
//   vision: patches in -> [P, H]; projector: [P, H] -> [P / merge², H_language];
//   language: [image tokens, H] at the first layer, [T, H] inside, a scalar loss (sum of token
//   losses × loss_scale) at the head; diffusion: [L, H] inside, the conditioning [C, W] as an input
//   of every chunk, a scalar loss (sum of squared errors × latent_scale × loss_weight) at the head.
//   One forward = one saved graph (the tape) = one backward; several works may be in flight.
//   Every weight-bearing layer is a torch::autograd::Function whose backward returns the input
//   gradient and queues {x, dy}; the weight part runs the queue: at once (backward) or later as its
//   own op (backward_input, then backward_weight).
// Parameters, their cuts and initial values: shared/chunk/parameters.h. Inner collectives are
// exactly expand()'s list.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/attention/attention_calls.h"
#include "exec/autograd/inner_groups.h"
#include "exec/parameters/init.h"
#include "exec/work_input.h"
#include "shared/chunk/expand.h"
#include "shared/chunk/parameters.h"
#include "shared/model/model.h"

namespace polyphony::exec {

struct ChunkOptions {
  torch::Dtype dtype = torch::kFloat32;
  std::uint64_t seed = 1;
  bool trainable = true;   // holds gradients for the parameters that train (Parameter::trained)
  bool input_grad = true;  // the backward returns the gradients of the boundary inputs
  bool edge_grad = true;   // those of inputs over model edges among them
  bool sequence_parallel = false;
  int tp_pieces = 1;  // ModuleLayout
  AttentionWay attention;
  int expert_tp = 0;                   // tensor-parallel ranks that cut one expert: 1, or 0 for all
  std::vector<int> input_edges = {0};  // of the inputs that come over model edges, in order
  // Blocks whose forward, or its attention, runs again inside the backward (exec/autograd/recompute.h):
  // those at these positions of the module's stack.
  Recompute recompute = Recompute::none;
  LayerRange recomputed = kAllLayers;
  bool perturb = false;  // tests: biases and norm weights start away from 0 and 1, so that their
                         // gradients are proven
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

  // `inputs` and the tensors in `data` must stay as they are until the work's backward.
  // `inputs`: in the order of chunk_inputs() (shared/plan/links.h): what the layers before left,
  // then what comes over edges (for token_embedding the rows that are not text; any may have 0
  // rows). None for a chunk that starts at the data. An undefined tensor is no input.
  // `recipe`: what its backward makes again, in place of what the options say.
  torch::Tensor forward(std::uint64_t work, const std::vector<torch::Tensor>& inputs,
                        const WorkInput& data, Recipe recipe = Recipe::layout);
  torch::Tensor forward(std::uint64_t work, const torch::Tensor& input, const WorkInput& data) {
    return forward(work, std::vector<torch::Tensor>{input}, data);
  }
  // `output_grad` is undefined for a chunk that ends in the loss, and where no gradient comes back.
  // Returns the gradient of each input, undefined when not wanted.
  std::vector<torch::Tensor> backward(std::uint64_t work, const torch::Tensor& output_grad);
  std::vector<torch::Tensor> backward_input(std::uint64_t work, const torch::Tensor& output_grad);
  void backward_weight(std::uint64_t work);
  void drop(std::uint64_t work);  // frees a tape without a backward (frozen chunks, evaluation)
  // Evaluation: the loss rows' arg max over the vocabulary instead of a loss. Chunk must end in the
  // head.
  torch::Tensor predict(const std::vector<torch::Tensor>& inputs, const WorkInput& data);

  std::vector<LocalParameter>& parameters();
  // Collectives issued inside forward/backward since the last call, in order, for the check against
  // expand().
  std::vector<InnerCollective> take_issued();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace polyphony::exec
