// The base class with which every layer kind states its kernels and inner collectives: sizes on
// this rank, GEMMs, passes over memory, collectives. Each kind has its own pair of files; the rows
// of shared/layers/layer_table.h list them.
//
// Names of sizes are those of shared/model/model.h, after the tensor-parallel split. Element counts
// are converted to bytes in the compute format. If ranks have unequal shares (of rows under
// sequence parallelism, of a vocabulary), the largest counts. Labels are assumed to be spread
// evenly over the rows.
#pragma once

#include <algorithm>

#include "shared/kernels/expansion.h"
#include "shared/kernels/kernel_form.h"
#include "shared/work/row_pieces.h"
#include "shared/work/rows.h"

namespace polyphony {

// One weight matrix on this rank: y[rows, out] = x[rows, in] Wᵀ. Counts are after the
// tensor-parallel cut.
struct Linear {
  std::int64_t rows, in, out;
  bool bias = false;
  std::int64_t low_rank = 0;  // r of its LoRA pair (shared/kernels/lora.h); 0: none
};

// Appends kernels and collectives to an expansion. Layer kinds derive from it; one layer kind can
// be constructed from another, to delegate to it.
//
// The plain form counts the memory passes of a plain ATen implementation: norms are one fused
// kernel (at::layer_norm, at::rms_norm), everything else is one kernel per arithmetic operation,
// and bias-free GEMMs accumulate weight gradients in place (addmm_). "Passes" are reads plus writes
// of an array. Source of the pass counts: own count, stated next to each.
class LayerKernels {
 public:
  LayerKernels(const Module& module, LayerKind layer, BlockKind block, const WorkSize& size,
               const ChunkContext& context, bool input_grad, Expansion& out, KernelForm form)
      : module_(module),
        layer_(layer),
        block_(block),
        size_(size),
        context_(context),
        input_grad_(input_grad),
        out_(out),
        form_(form) {}

 protected:
  bool is_own() const { return form_ == KernelForm::own; }
  // Sizes on this rank.
  std::int64_t hidden() const { return module_.hidden; }
  std::int64_t element() const { return size_of(context_.precision).value; }
  // Bytes per element in fp32 or wider. Master gradients of 16-bit and smaller formats are fp32
  // (shared/scenario/scenario.h), and the loss is computed in fp32 or wider.
  std::int64_t wide_element() const { return std::max<std::int64_t>(4, element()); }
  bool sequence() const { return context_.sp && context_.tp > 1; }
  // Of `rows` of all ranks, how many one rank holds between blocks.
  std::int64_t own(std::int64_t rows) const {
    return sequence() ? RowShares{rows, context_.tp}.share() : rows;
  }
  bool lora() const { return module_.trainable == Trainable::lora; }
  std::int64_t low_rank() const { return lora() ? module_.lora_rank : 0; }
  bool trains_base() const { return context_.weight_grad && !lora(); }  // the weights themselves
  // Elements of the hidden rows [own, H] between the parts of a block.
  std::int64_t between_blocks() const { return own(size_.tokens) * hidden(); }
  // Whether context-parallel ranks share the sequences (language modules only).
  bool context() const { return context_.cp > 1 && layer_ == LayerKind::decoder_block; }

  Kernel& add(KernelKind kind, double flops, std::int64_t bytes, int launches, std::int64_t m = 0,
              std::int64_t n = 0, std::int64_t k = 0) {
    out_.kernels.push_back({kind, layer_, Flops(flops), Bytes(bytes), launches, m, n, k});
    return out_.kernels.back();
  }
  // A GEMM that is not yet added to the expansion.
  Kernel product(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t bytes) const {
    const double flops =
        2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    return {KernelKind::gemm, layer_, Flops(flops), Bytes(bytes), 1, m, n, k};
  }
  void gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t bytes) {
    out_.kernels.push_back(product(m, n, k, bytes));
  }
  // Mean number of keys per query.
  static std::int64_t mean_keys(std::int64_t pairs, std::int64_t queries) {
    return pairs / std::max<std::int64_t>(1, queries);
  }
  // Adds `launches` kernels that together make `count` reads or writes of `elements` values.
  void passes(std::int64_t elements, int count, int launches) {
    add(KernelKind::elementwise, 0, elements * count * element(), launches);
  }
  struct Passes {
    int count, launches;
  };
  void passes(std::int64_t elements, Passes plain, Passes own_form) {
    const Passes& of = is_own() ? own_form : plain;
    passes(elements, of.count, of.launches);
  }
  // Adds small kernels whose bytes do not matter: their data does not grow with the rows.
  void more_launches(int launches) { add(KernelKind::elementwise, 0, 0, launches); }
  // A convolution per channel over the last `taps` rows: a multiplication and an addition per tap.
  // Backward: the same for the gradients of the input and of the taps.
  void convolution(std::int64_t elements, int taps) { passes(elements, 3 * taps, taps); }
  void convolution_backward(std::int64_t elements, int taps) {
    passes(elements, 6 * taps, 2 * taps);
  }
  void all_reduce(std::int64_t rows, std::int64_t width) {
    reduce(CollectiveKind::all_reduce, rows * width * element());
  }
  // Sequence parallelism: all-gathers the ranks' own rows [q, width], or reduce-scatters partial
  // sums of all rows, in equal padded parts (exec/autograd/sequence_rows.h).
  void gather(std::int64_t rows, std::int64_t width) {
    reduce(CollectiveKind::all_gather, RowShares{rows, context_.tp}.padded() * width * element());
  }
  void scatter(std::int64_t rows, std::int64_t width) {
    const RowShares shares{rows, context_.tp};
    if (shares.padded() != rows)
      passes(rows * width, {2, 1}, {2, 2});  // copied into a zero-padded array
    reduce(CollectiveKind::reduce_scatter, shares.padded() * width * element());
  }
  // Sums partial results over the tensor-parallel group.
  void sum(std::int64_t rows, std::int64_t width) {
    sequence() ? scatter(rows, width) : all_reduce(rows, width);
  }
  void reduce(CollectiveKind kind, std::int64_t bytes) {
    if (context_.tp > 1) out_.collectives.push_back({kind, Bytes(bytes), GroupKind::tensor});
  }
  // States that the last collective may be overlapped with this GEMM of its layer.
  void may_hide(Beside beside, const Kernel& product) {
    if (context_.tp == 1) return;
    out_.collectives.back().may_hide = beside;
    out_.collectives.back().product = product;
  }
  // Rows in chunks (shared/work/row_pieces.h): the collective of one chunk is overlapped with the
  // GEMM of another. `product(rows)` adds the kernels of a chunk with that many rows.
  bool in_pieces() const { return context_.tp > 1 && context_.tp_pieces > 1; }
  RowPieces pieces_of(std::int64_t rows) const {
    return {{rows, sequence() ? context_.tp : 1}, context_.tp_pieces};
  }
  template <class Product>
  KernelRun run_of(Product product, const RowPieces& pieces, int i) {
    const auto begin = static_cast<std::uint32_t>(out_.kernels.size());
    if (pieces.each(i) > 0 && pieces.full(i) > 0) product(pieces.each(i) * pieces.full(i));
    if (pieces.rest(i) > 0) product(pieces.rest(i));
    return {begin, static_cast<std::uint32_t>(out_.kernels.size())};
  }
  template <class Product>
  void gather_pieces(std::int64_t rows, std::int64_t width, Product product) {
    const RowPieces pieces = pieces_of(rows);
    KernelRun before;
    for (int i = 0; i < pieces.count(); ++i) {
      reduce(CollectiveKind::all_gather, pieces.padded(i) * width * element());
      out_.collectives.back().beside = before;
      before = run_of(product, pieces, i);
    }
  }
  template <class Product>
  void sum_pieces(std::int64_t rows, std::int64_t width, Product product) {
    const RowPieces pieces = pieces_of(rows);
    for (int i = 0; i < pieces.count(); ++i) {
      if (is_own() && sequence() && pieces.full(i) < context_.tp)  // zeros for missing rows
        passes(pieces.padded(i) * width, 1, 1);
      const KernelRun run = run_of(product, pieces, i);
      if (i > 0) out_.collectives.back().beside = run;
      reduce(sequence() ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
             pieces.padded(i) * width * element());
    }
  }
  void collective(CollectiveKind kind, std::int64_t bytes, GroupKind group) {
    out_.collectives.push_back({kind, Bytes(bytes), group});
  }

  std::int64_t gemm_bytes(const Linear& l) const {
    return (l.rows * l.in + l.in * l.out + l.rows * l.out) * element();
  }
  // Forward pass of a column-parallel layer, with the gather of its input.
  void forward_column(const Linear& l) {
    if (sequence() && in_pieces())
      return gather_pieces(l.rows, l.in, [&](std::int64_t rows) {
        forward_cut(of_rows(l, rows));
        if (l.bias) passes(rows * l.out, 2, 1);  // written before the GEMM, and read by it
      });
    if (sequence()) gather(l.rows, l.in);
    forward_cut(l);
  }
  static Linear of_rows(Linear l, std::int64_t rows) {
    l.rows = rows;
    return l;
  }
  // The GEMM alone, without collectives; addmm adds the bias.
  void forward_cut(const Linear& l) {
    gemm(l.rows, l.out, l.in, gemm_bytes(l) + (l.bias ? l.out * element() : 0));
    low_rank_forward(l);
  }
  // Forward pass of a row-parallel layer; the bias is added once, after the sum over ranks.
  void forward_row(const Linear& l) {
    if (in_pieces()) {
      low_rank_down(l);
      sum_pieces(l.rows, l.out, [&](std::int64_t rows) {
        gemm(rows, l.out, l.in, gemm_bytes(of_rows(l, rows)));
        low_rank_up(of_rows(l, rows));
      });
    } else {
      gemm(l.rows, l.out, l.in, gemm_bytes(l));
      low_rank_forward(l);
      sum(l.rows, l.out);
    }
    if (l.bias) passes(own(l.rows) * l.out, 2, 1);
  }
  Kernel input_product(const Linear& l) const {
    return product(l.rows, l.in, l.out, gemm_bytes(l));
  }
  Kernel weight_product(const Linear& l) const {
    return product(
        l.out, l.in, l.rows,
        (l.rows * l.in + l.rows * l.out) * element() + 2 * l.in * l.out * wide_element());
  }
  void input_gradient(const Linear& l) {
    out_.kernels.push_back(input_product(l));
    low_rank_backward(l, true);
  }
  void input_gradient_column(const Linear& l) {
    if (sequence() && context_.weight_grad) {  // for the weight gradient
      gather(l.rows, l.in);
      if (!in_pieces()) may_hide(Beside::input_gradient, input_product(l));
    }
    if (in_pieces()) {
      low_rank_below(l);
      sum_pieces(l.rows, l.in, [&](std::int64_t rows) {
        gemm(rows, l.in, l.out, gemm_bytes(of_rows(l, rows)));
        low_rank_input(of_rows(l, rows));
      });
    } else {
      input_gradient(l);
      sum(l.rows, l.in);
    }
    if (trains_base()) may_hide(Beside::weight_gradient, weight_product(l));
  }
  void input_gradient_row(const Linear& l) {
    if (sequence() && in_pieces()) {
      gather_pieces(l.rows, l.out, [&](std::int64_t rows) {
        if (context_.weight_grad) passes(rows * l.out, 2, 1);  // the gathered gradient is also kept
        gemm(rows, l.in, l.out, gemm_bytes(of_rows(l, rows)));
      });
      return low_rank_backward(l, true);
    }
    if (sequence()) gather(l.rows, l.out);
    input_gradient(l);
  }
  void weight_gradient(const Linear& l) {
    if (lora()) return low_rank_weight(l);
    out_.kernels.push_back(weight_product(l));
    if (l.bias) passes(l.rows * l.out, 1, 2);  // column sums, added to the gradient
  }
  // A norm over rows × width: forward x -> y, backward dy, x -> dx. The sums over rows for the
  // weight gradient, which read dy and x again, are always part of the input-gradient op, even if
  // weight gradients are a separate op.
  void norm(std::int64_t rows, std::int64_t width) { passes(rows * width, 2, 1); }
  void norm_backward(std::int64_t rows, std::int64_t width) {
    passes(rows * width, 3, 1);
    if (!norms_train()) return;
    if (is_own())  // partial sums of each thread block are added up
      more_launches(1);
    else
      passes(rows * width, 2, module_.norm == Norm::layer ? 4 : 3);
  }
  // Adds the sums of `norms` norms to the gradients, weights and biases separately.
  void norm_weights(int norms) {
    if (is_own() && norms_train()) more_launches(norms * (module_.norm == Norm::layer ? 2 : 1));
  }
  // Selects the token ids in this rank's part of the vocabulary
  // (shared/layers/language_layers.cpp).
  void local_ids(std::int64_t ids);
  bool norms_train() const { return context_.weight_grad && !lora(); }

  // LoRA pairs (shared/kernels/lora_kernels.cpp); the comments name the result.
  void low_rank_forward(const Linear& l) { low_rank_down(l), low_rank_up(l); }
  void low_rank_down(const Linear& l);   // h
  void low_rank_up(const Linear& l);     // y
  void low_rank_below(const Linear& l);  // g
  void low_rank_input(const Linear& l);  // dx
  void low_rank_backward(const Linear& l, bool input_grad);
  void low_rank_weight(const Linear& l);

  const Module& module_;
  LayerKind layer_;
  BlockKind block_;
  const WorkSize& size_;
  const ChunkContext& context_;
  bool input_grad_;  // the layer's input gradient is needed
  Expansion& out_;
  KernelForm form_;
};

}  // namespace polyphony
