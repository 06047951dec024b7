// One rank's share of one chunk (a layer range of one module): parameters, and forward and backward
// of work items.
//   Activations at its boundary are [rows, width], replicated over the tensor-parallel ranks.
//   vision: patches in -> [P, H]; projector: [P, H] -> [P / merge², H_language];
//   language: [image tokens, H] at the first layer, [T, H] inside, a scalar loss (sum of token
//   losses × loss_scale) at the head.
//   One forward = one saved graph (the tape) = one backward; several works may be in flight.
//   Every weight-bearing layer is a torch::autograd::Function whose backward returns the input
//   gradient and queues {x, dy}; the weight part runs the queue: at once (backward) or later as its
//   own op (backward_input, then backward_weight).
// Parameters, their cuts and initial values: shared/parameters.h. Inner collectives are exactly
// expand()'s list.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/communicator.h"
#include "exec/init.h"
#include "exec/work_input.h"
#include "shared/expand.h"
#include "shared/model.h"
#include "shared/parameters.h"

namespace polyphony::exec {

struct ChunkOptions {
  torch::Dtype dtype = torch::kFloat32;
  std::uint64_t seed = 1;
  bool trainable = true;
  bool input_grad = true;  // the backward returns the gradient of the boundary input
  bool recompute = false;  // keep only the input; run the forward again before the backward
  bool perturb = false;    // tests: biases and norm weights start away from 0 and 1, so that their
                           // gradients are proven
  torch::Device device = torch::kCPU;
};

class Chunk {
 public:
  // `tensor_group` may be null when tp is 1; it must outlive the chunk.
  Chunk(const Module& module, LayerRange layers, Communicator* tensor_group,
        const ChunkOptions& options);
  ~Chunk();
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  // `input` and the tensors in `data` must stay as they are until the work's backward.
  // `input` is undefined for a chunk that starts at patch_embedding; for token_embedding it holds
  // the image rows (may have 0 rows).
  torch::Tensor forward(std::uint64_t work, const torch::Tensor& input, const WorkInput& data);
  // Recompute: runs the forward again and keeps its graph, so that the backward finds it (as its
  // own op; backward() does it otherwise).
  void rebuild(std::uint64_t work);
  // `output_grad` is undefined for a chunk that ends in the loss. Returns the input gradient,
  // undefined when not wanted.
  torch::Tensor backward(std::uint64_t work, const torch::Tensor& output_grad);
  torch::Tensor backward_input(std::uint64_t work, const torch::Tensor& output_grad);
  void backward_weight(std::uint64_t work);
  void drop(std::uint64_t work);  // frees a tape without a backward (frozen chunks, evaluation)
  // Evaluation: the loss rows' arg max over the vocabulary instead of a loss. Chunk must end in the
  // head.
  torch::Tensor predict(const torch::Tensor& input, const WorkInput& data);

  std::vector<LocalParameter>& parameters();
  // Collectives issued inside forward/backward since the last call, in order, for the check against
  // expand().
  std::vector<InnerCollective> take_issued();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace polyphony::exec
