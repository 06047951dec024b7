// One rank's part of one parameter group (shared/program/program.h): values, gradients and AdamW
// state, sharded as the layout states. shared/chunk/held_sizes.h computes the sizes.
//
// The gradients of all trained parameters form one flat tensor: first the replicated parameters
// whose gradients are partial sums over the tensor-parallel ranks, then all others, each in stack
// order. Rank i of S in the shard group owns the elements [cut_begin(n, S, i), cut_begin(n, S, i +
// 1)) of it; a cut may fall inside a parameter.
//
// The chunk's LocalParameters always refer to whole tensors. A tensor that is not resident has 0
// elements, so that operators reject it: with shard `full` the values between release() and
// gather(), and with `gradients` and `full` the whole gradient between reduce_scatter() and
// open_gradient().
//
// The calls of one step, for each value of the layout's `shard`:
//     none        backwards, reduce_partial, reduce_tied, all_reduce(replicas), squared_norm, step
//     optimizer   backwards, reduce_partial, reduce_tied, reduce_scatter, all_reduce(replicas),
//                 squared_norm, step, gather
//     gradients   (open_gradient, backward, reduce_partial, reduce_scatter) for every microbatch,
//                 all_reduce(replicas), squared_norm, step, gather; no tied embeddings
//     full        the same, with each forward and backward between gather and release, and no
//                 gather at the end
//
// bf16: gradients and moments are fp32, and so is a master copy of the owned values, from which the
// bf16 values are rounded after each step. Nothing here locks: the caller orders calls from several
// threads.
// Source: ZeRO, Rajbhandari et al., arXiv 1910.02054; FSDP, Zhao et al., arXiv 2304.11277.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/fused/adamw.h"
#include "exec/parameters/init.h"
#include "exec/parameters/optimizer.h"
#include "exec/transport/communicator.h"
#include "shared/model/layout.h"

namespace polyphony::exec {

struct HeldOptions {
  ShardIndex place;
  bool sequence_parallel = false;
  Shard shard = Shard::none;
  int shards = 1, shard_index = 0;  // size of the shard group, and this rank's index in it
};

// The part of one parameter that is always resident on this rank: `elements` of its local tensor
// (row-major), and for these, as flat tensors, the value and, if it is trained, gradient, moments
// and master copy (bf16 only).
struct HeldPiece {
  LocalParameter* parameter = nullptr;
  Interval elements;
  bool repeated = false;  // an earlier rank of the shard group has the same elements
  torch::Tensor value, gradient, first_moment, second_moment, master;
};

// The terms that all updates of a step share: zero-dimensional tensors on the parameters' device.
struct UpdateTerms {
  torch::Tensor clip;   // double: factor applied to the gradient first; undefined: 1
  torch::Tensor count;  // float: number of this AdamW step, from 1
  torch::Tensor skip;   // float: 1 = skip the update, and only zero the gradient; else 0
};

class HeldParameters {
 public:
  // Takes over the tensors of the parameters, which must outlive this object. The trained
  // parameters are those with a gradient.
  HeldParameters(std::vector<LocalParameter*> parameters, const HeldOptions& options);
  HeldParameters(const HeldParameters&) = delete;
  HeldParameters& operator=(const HeldParameters&) = delete;

  const HeldOptions& options() const { return options_; }
  const std::vector<LocalParameter*>& parameters() const { return parameters_; }
  bool trains() const { return trained_.count > 0; }
  // Returns the whole flat gradient; it has 0 elements while it is not resident.
  torch::Tensor& gradient() { return gradient_; }
  // Allocates the whole gradient as zeros, unless it is already resident.
  void open_gradient();
  // Sums partial gradients over the tensor-parallel group, in one all_reduce of
  // partial_gradient_elements(). The sum is linear, so it may come before or after other
  // reductions, but must come before reduce_scatter().
  void reduce_partial(Communicator& tensor);
  // Sums the gradient of a tied matrix over the ranks that use it in other layers.
  void reduce_tied(Communicator& copies);
  // Adds the sum over the shard group to this rank's own part of the gradient (shard `optimizer`:
  // replaces the part by it).
  void reduce_scatter(Communicator& shards);
  // Sums this rank's own part of the gradient over the replicas of that part.
  void all_reduce(Communicator& replicas);
  // Gathers values from the ranks that own them: all values with shard `full`, else the trained
  // ones only.
  void gather(Communicator& shards);
  // Frees the gathered values with shard `full`; else does nothing.
  void release();
  // On a device: records that tensors which are allocated and freed during a step are used on the
  // current stream. Call it on each stream before such use.
  void use_here();

  // Returns Σ g² over owned elements as one double on their device; NaN and infinities propagate.
  // Each element is counted on one rank of the tensor and shard groups; the caller counts only one
  // of the replicas.
  torch::Tensor squared_norm() const;
  // Returns the norm of each parameter's owned gradient.
  std::vector<torch::Tensor> gradient_norms() const;
  // Returns the name of the first parameter whose norm is not finite; empty if there is none.
  std::string not_finite(const std::vector<torch::Tensor>& norms) const;
  // Takes one AdamW step on the elements that this rank owns, and zeros the gradient. Does not wait
  // for the device.
  void step(const AdamWOptions& options, double rate, const UpdateTerms& terms);
  void zero_gradient();

  // Returns the resident parts for checkpoints, trained parameters first. Values and state may be
  // overwritten.
  std::vector<HeldPiece>& pieces() { return pieces_; }

 private:
  struct Place {
    LocalParameter* parameter;
    std::vector<std::int64_t> shape;
    std::int64_t offset, count;
  };
  // The parameters of one kind (trained or frozen), one after another.
  struct Flat {
    std::vector<Place> places;
    std::int64_t count = 0;
    std::vector<std::int64_t> shares;  // elements of each shard rank
    Interval mine;
    torch::Tensor whole, owned;  // values; undefined if each parameter has a tensor of its own
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
  std::int64_t partial_ = 0;  // number of leading elements of trained_ that are partial sums
  // Trained projections of key and value heads that several tensor-parallel ranks hold
  // (Parameter::shares_heads()).
  std::vector<Place> shared_;
  torch::Tensor gradient_, owned_gradient_;
  torch::Tensor first_moment_, second_moment_, master_;  // of the owned elements
  std::vector<HeldPiece> pieces_;
  std::vector<Interval> counted_;  // parts of owned_gradient_ that the norm counts on this rank
  kernels::AdamWGroup at_once_;
};

}  // namespace polyphony::exec
