// What one rank holds of one parameter group (shared/program/program.h): values, gradients and
// AdamW state, sharded as the layout says (shared/chunk/held_sizes.h has the sizes).
//   Trained parameters make one flat gradient: first the replicated ones whose gradients are
//   partial sums over the tensor-parallel ranks, then all others, each in stack order. Rank i of S
//   in the shard group owns the run [cut_begin(n, S, i), cut_begin(n, S, i + 1)) of it, wherever
//   that cuts. The chunk's LocalParameters keep pointing at whole tensors; what is not there (full:
//   values between release and gather; gradients, full: the whole gradient between reduce_scatter
//   and open_gradient) is a tensor of 0 elements, which no operator takes for it.
//   One step, by Layout shard:
//     none        backwards, reduce_partial, all_reduce(replicas), norm, step
//     optimizer   backwards, reduce_partial, reduce_scatter, all_reduce(replicas), norm, step, gather
//     gradients   (open_gradient, backward, reduce_partial, reduce_scatter) for every work,
//                 all_reduce(replicas), norm, step, gather
//     full        the same, each forward and backward between gather and release; no gather at last
//   Whoever calls orders what runs on several threads: nothing here locks.
//   bf16: gradients and moments are fp32, and so is a master copy of the owned values, from which
//   the bf16 ones are rounded after each step.
// Source: ZeRO, Rajbhandari et al., arXiv 1910.02054; FSDP, Zhao et al., arXiv 2304.11277.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/cuda/adamw.h"
#include "exec/parameters/init.h"
#include "exec/parameters/optimizer.h"
#include "exec/transport/communicator.h"
#include "shared/model/layout.h"

namespace polyphony::exec {

struct HeldOptions {
  ShardIndex place;
  bool sequence_parallel = false;
  Shard shard = Shard::none;
  int shards = 1, shard_index = 0;  // of the shard group
};

// What this rank keeps of one parameter all the time: `elements` of its local tensor (row-major),
// and for these, flat, value and, when it trains, gradient, moments and master (bf16 only).
struct HeldPiece {
  LocalParameter* parameter = nullptr;
  Interval elements;
  bool repeated = false;  // a rank before this one in the shard group keeps the same
  torch::Tensor value, gradient, first_moment, second_moment, master;
};

// What the updates of a step have in common: tensors without dimensions on the parameters' device.
struct UpdateTerms {
  torch::Tensor clip;   // double: multiplies the gradient first; undefined: nothing does
  torch::Tensor count;  // float: this is AdamW's `count`-th step
  torch::Tensor skip;   // float: 1, nothing changes but the gradient; 0 else
};

class HeldParameters {
 public:
  // Takes over the tensors of the parameters, which must outlive it. Trained are those with a
  // gradient.
  HeldParameters(std::vector<LocalParameter*> parameters, const HeldOptions& options);
  HeldParameters(const HeldParameters&) = delete;
  HeldParameters& operator=(const HeldParameters&) = delete;

  const HeldOptions& options() const { return options_; }
  const std::vector<LocalParameter*>& parameters() const { return parameters_; }
  bool trains() const { return trained_.count > 0; }
  // The whole flat gradient; empty when it is not there.
  torch::Tensor& gradient() { return gradient_; }
  // Makes the whole gradient, of zeros, unless it is there.
  void open_gradient();
  // Partial gradients become their sums over the tensor-parallel group, in one all_reduce of
  // partial_gradient_elements(). Linear: before or after others, but before a reduce_scatter.
  void reduce_partial(Communicator& tensor);
  // Sums the gradient of the tied matrix over the ranks that have it in other layers.
  void reduce_tied(Communicator& copies);
  // Adds the sum over the shard group to this rank's own part (optimizer: replaces it).
  void reduce_scatter(Communicator& shards);
  // Sums what this rank owns over the group that holds copies of it.
  void all_reduce(Communicator& replicas);
  // Values from their owners. full: all; else the trained ones only.
  void gather(Communicator& shards);
  void release();  // full: the gathered values; else nothing
  // On a device: what comes and goes is used on its current stream. Before such use, on each stream.
  void use_here();

  // Σ g² over owned elements, each counted on one rank of the tensor and shard groups; of all
  // replicas the caller counts one. One double on their device; NaN and infinities pass on.
  torch::Tensor squared_norm() const;
  // The norm of each parameter's owned gradient, and the first parameter whose one is not finite; empty: none.
  std::vector<torch::Tensor> gradient_norms() const;
  std::string not_finite(const std::vector<torch::Tensor>& norms) const;
  // One AdamW step on what this rank owns. The gradient is zero afterwards. Asks the device nothing.
  void step(const AdamWOptions& options, double rate, const UpdateTerms& terms);
  void zero_gradient();

  // For checkpoints; the trained ones first. Values and state may be written there.
  std::vector<HeldPiece>& pieces() { return pieces_; }

 private:
  struct Place {
    LocalParameter* parameter;
    std::vector<std::int64_t> shape;
    std::int64_t offset, count;
  };
  // The parameters of one kind, one after another.
  struct Flat {
    std::vector<Place> places;
    std::int64_t count = 0;
    std::vector<std::int64_t> shares;  // elements by shard rank
    Interval mine;
    torch::Tensor whole, owned;  // values; undefined where each parameter keeps its own
    void append(LocalParameter* parameter);
    void divide(int shards, int index);
    void set_values();
  };

  void step_at_once(const AdamWOptions& options, double rate, const UpdateTerms& terms);
  void hold_values(Flat& flat);
  void hold_gradient();
  void set_gradients();
  void add_pieces();
  HeldPiece piece_of(const Flat& flat, const Place& place, bool trained) const;
  void find_counted();

  HeldOptions options_;
  std::vector<LocalParameter*> parameters_;
  Flat trained_, frozen_;
  std::int64_t partial_ = 0;   // first elements of trained_ that are partial sums
  std::vector<Place> shared_;  // of trained_, with k and v that other ranks have too
  torch::Tensor gradient_, owned_gradient_;
  torch::Tensor first_moment_, second_moment_, master_;  // owned
  std::vector<HeldPiece> pieces_;
  std::vector<Interval> counted_;  // of owned_gradient_, what the norm counts here
  kernels::AdamWGroup at_once_;
};

}  // namespace polyphony::exec
