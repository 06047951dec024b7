// What the layer kinds use to count their saved activations ("tape" in identifiers): the bytes that
// one layer keeps on one rank from its forward to its backward pass. Each kind has its own pair of
// files; the rows of shared/layers/layer_table.h list them.
#pragma once

#include <algorithm>

#include "shared/kernels/expansion.h"
#include "shared/work/row_shares.h"

namespace polyphony {

inline constexpr std::int64_t kIndex = 8;  // bytes of an int64

struct LayerBytes {
  const Module& module;
  BlockKind block;
  WorkSize size;  // as the layer sees it (layer_size())
  const RankContext& context;
  bool starts = false;  // no input of the layer needs a gradient, and its first norm is not trained
  Recompute recompute = Recompute::none;

  std::int64_t element() const { return size_of(context.precision).value; }
  // Bytes per element of what is at least fp32 in any format: norm statistics, log-sum-exps, router
  // logits, probabilities.
  std::int64_t wide() const { return std::max<std::int64_t>(4, element()); }
  // Of `rows`, those this rank holds between blocks.
  std::int64_t own(std::int64_t rows) const {
    return context.sp ? RowShares{rows, context.tp}.count(context.tensor_index) : rows;
  }
  // Which matrices save their inputs: all of a fully trained module; with LoRA, those with a
  // low-rank pair; none of a frozen module.
  bool trains() const { return module.trainable == Trainable::full; }
  bool adapts() const { return module.trainable == Trainable::lora; }
  // Bytes of the rank's own rows between blocks.
  std::int64_t input() const { return element() * own(size.tokens) * module.hidden; }
  // Bytes of a norm's statistics: one number per row for RMSNorm, two for LayerNorm.
  std::int64_t statistics(std::int64_t rows) const {
    const bool two = module.kind == ModuleKind::diffusion || module.norm == Norm::layer;
    return (two ? 2 : 1) * wide() * rows;
  }
  // Bytes of the saved inputs of the second matrices of `pairs` low-rank pairs.
  std::int64_t low_rank(int pairs) const {
    return adapts() ? element() * size.tokens * pairs * module.lora_rank : 0;
  }
  // Bytes saved of the input of a block's matrices, which the weight gradient or a low-rank pair
  // needs; 0 for a frozen module.
  std::int64_t matrix_input() const { return trains() || adapts() ? input() : 0; }
  // Whether gradients pass through the layer's attention.
  bool reaches_attention() const { return !starts || adapts(); }
};

}  // namespace polyphony
