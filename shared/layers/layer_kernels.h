// What the kinds of layers write their kernels and inner collectives with (one file pair a kind; the
// rows of shared/layers/layer_table.h): sizes on this rank, matrix products, passes over memory.
//   Names of sizes as in shared/model/model.h, after the tensor-parallel cut; element counts become
//   bytes in the compute format. Where ranks have unequal shares (of rows under sequence
//   parallelism, of a vocabulary), the largest; labels are taken to be spread evenly over the rows.
#pragma once

#include <algorithm>

#include "shared/layers/expand.h"
#include "shared/layers/row_shares.h"
#include "shared/layers/rows.h"

namespace polyphony {

// One weight matrix on this rank: y[rows, out] = x[rows, in] Wᵀ. Counts are after the
// tensor-parallel cut.
struct Linear {
  std::int64_t rows, in, out;
  bool bias = false;
  std::int64_t low_rank = 0;  // r of the trained pair beside it (shared/layers/lora.h); 0: none
};

// Adds kernels and collectives to an expansion. A kind of layer derives from it, and is made of any
// other. What a pass over memory reads and writes follows a plain ATen implementation: norms are one
// fused kernel (at::layer_norm, at::rms_norm), everything else one kernel per arithmetic operation,
// and bias-free matrix products accumulate weight gradients in place (addmm_). Source of the pass
// counts: own count, stated beside each.
class LayerKernels {
 public:
  LayerKernels(const Module& module, LayerKind layer, BlockKind block, const WorkSize& size,
               const ChunkContext& context, bool input_grad, Expansion& out)
      : module_(module),
        layer_(layer),
        block_(block),
        size_(size),
        context_(context),
        input_grad_(input_grad),
        out_(out) {}

 protected:
  // Sizes on this rank.
  std::int64_t hidden() const { return module_.hidden; }
  std::int64_t element() const { return size_of(context_.precision).value; }
  // Master gradients of 16-bit and smaller formats are fp32 (shared/scenario/scenario.h); the loss
  // is computed in fp32 at least.
  std::int64_t wide_element() const { return std::max<std::int64_t>(4, element()); }
  bool sequence() const { return context_.sp && context_.tp > 1; }
  // Of `rows` of all ranks, those a rank has between blocks.
  std::int64_t own(std::int64_t rows) const {
    return sequence() ? RowShares{rows, context_.tp}.share() : rows;
  }
  bool lora() const { return module_.trainable == Trainable::lora; }
  std::int64_t low_rank() const { return lora() ? module_.lora_rank : 0; }
  bool trains_base() const { return context_.weight_grad && !lora(); }  // beside LoRA's pairs
  // Rows [own, H] between the parts of a block, elements.
  std::int64_t between_blocks() const { return own(size_.tokens) * hidden(); }
  // Context parallelism: ranks that share the sequences of a language module.
  bool context() const { return context_.cp > 1 && layer_ == LayerKind::decoder_block; }

  Kernel& add(KernelKind kind, double flops, std::int64_t bytes, int launches, std::int64_t m = 0,
              std::int64_t n = 0, std::int64_t k = 0) {
    out_.kernels.push_back({kind, layer_, Flops(flops), Bytes(bytes), launches, m, n, k});
    return out_.kernels.back();
  }
  void gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t bytes) {
    const double flops =
        2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    add(KernelKind::gemm, flops, bytes, 1, m, n, k);
  }
  // Keys that a query meets in the mean.
  static std::int64_t mean_keys(std::int64_t pairs, std::int64_t queries) {
    return pairs / std::max<std::int64_t>(1, queries);
  }
  // `passes` reads or writes of `elements` values.
  void passes(std::int64_t elements, int count, int launches) {
    add(KernelKind::elementwise, 0, elements * count * element(), launches);
  }
  // By channel over the last `taps` rows: a product and a sum a tap; back, of the input and of the
  // taps.
  void convolution(std::int64_t elements, int taps) { passes(elements, 3 * taps, taps); }
  void convolution_backward(std::int64_t elements, int taps) {
    passes(elements, 6 * taps, 2 * taps);
  }
  void all_reduce(std::int64_t rows, std::int64_t width, bool beside_weights = false) {
    reduce(CollectiveKind::all_reduce, rows * width * element(), beside_weights);
  }
  // Own rows [q, width] come together, or partial sums of all rows are summed and go apart: equal
  // parts, padded (exec/autograd/sequence_rows.h).
  void gather(std::int64_t rows, std::int64_t width, bool beside_weights = false) {
    reduce(CollectiveKind::all_gather, RowShares{rows, context_.tp}.padded() * width * element(),
           beside_weights);
  }
  void scatter(std::int64_t rows, std::int64_t width, bool beside_weights = false) {
    const RowShares shares{rows, context_.tp};
    if (shares.padded() != rows) passes(rows * width, 2, 1);
    reduce(CollectiveKind::reduce_scatter, shares.padded() * width * element(), beside_weights);
  }
  void sum(std::int64_t rows, std::int64_t width, bool beside_weights = false) {
    sequence() ? scatter(rows, width, beside_weights) : all_reduce(rows, width, beside_weights);
  }
  void reduce(CollectiveKind kind, std::int64_t bytes, bool beside_weights = false) {
    if (context_.tp > 1)
      out_.collectives.push_back({kind, Bytes(bytes), GroupKind::tensor, beside_weights});
  }
  void collective(CollectiveKind kind, std::int64_t bytes, GroupKind group) {
    out_.collectives.push_back({kind, Bytes(bytes), group, false});
  }

  std::int64_t gemm_bytes(const Linear& l) const {
    return (l.rows * l.in + l.in * l.out + l.rows * l.out) * element();
  }
  void forward_column(const Linear& l) {
    if (sequence()) gather(l.rows, l.in);
    forward_cut(l);
  }
  void forward_cut(const Linear& l) {  // addmm adds the bias
    gemm(l.rows, l.out, l.in, gemm_bytes(l) + (l.bias ? l.out * element() : 0));
    low_rank_forward(l);
  }
  void forward_row(const Linear& l) {  // the bias is added once, after the sum over ranks
    gemm(l.rows, l.out, l.in, gemm_bytes(l));
    low_rank_forward(l);
    sum(l.rows, l.out);
    if (l.bias) passes(own(l.rows) * l.out, 2, 1);
  }
  void input_gradient(const Linear& l) {
    gemm(l.rows, l.in, l.out, gemm_bytes(l));
    low_rank_backward(l, true);
  }
  void input_gradient_column(const Linear& l) {
    if (sequence() && context_.weight_grad) gather(l.rows, l.in, true);  // for the weight gradient
    input_gradient(l);
    sum(l.rows, l.in, true);
  }
  void input_gradient_row(const Linear& l) {
    if (sequence()) gather(l.rows, l.out);
    input_gradient(l);
  }
  void weight_gradient(const Linear& l) {
    if (lora()) return low_rank_weight(l);
    const std::int64_t accumulated = 2 * l.in * l.out * wide_element();
    gemm(l.out, l.in, l.rows, (l.rows * l.in + l.rows * l.out) * element() + accumulated);
    if (l.bias) passes(l.rows * l.out, 1, 2);  // column sums, added to the gradient
  }
  // A norm over rows × width: forward x -> y; backward dy, x -> dx, and at once, though a weight part
  // be an op of its own, the sums over rows that its weight takes: they read both again.
  void norm(std::int64_t rows, std::int64_t width) { passes(rows * width, 2, 1); }
  void norm_backward(std::int64_t rows, std::int64_t width) {
    passes(rows * width, 3, 1);
    if (norms_train()) passes(rows * width, 2, module_.norm == Norm::layer ? 4 : 3);
  }
  bool norms_train() const { return context_.weight_grad && !lora(); }

  // shared/layers/lora_kernels.cpp
  void low_rank_forward(const Linear& l);
  void low_rank_backward(const Linear& l, bool input_grad);
  void low_rank_weight(const Linear& l);

  const Module& module_;
  LayerKind layer_;
  BlockKind block_;
  const WorkSize& size_;
  const ChunkContext& context_;
  bool input_grad_;  // the layer's input gradient is wanted
  Expansion& out_;
};

}  // namespace polyphony
