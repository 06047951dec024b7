// What the kinds of layers count their tapes with (one file pair a kind; the rows of
// shared/layers/layer_table.h): bytes that one layer keeps on one rank.
#pragma once

#include <algorithm>

#include "shared/kernels/expansion.h"
#include "shared/work/row_shares.h"

namespace polyphony {

inline constexpr std::int64_t kIndex = 8;  // bytes of an int64

struct LayerBytes {
  const Module& module;
  BlockKind block;
  WorkSize size;  // as the layer sees it
  const RankContext& context;
  bool starts = false;  // nothing that needs a gradient enters it, and its norm trains nothing
  Recompute recompute = Recompute::none;

  std::int64_t element() const { return size_of(context.precision).value; }
  // What is fp32 at least, in any format: statistics, log-sum-exps, router logits, probabilities.
  std::int64_t wide() const { return std::max<std::int64_t>(4, element()); }
  std::int64_t own(std::int64_t rows) const {
    return context.sp ? RowShares{rows, context.tp}.count(context.tensor_index) : rows;
  }
  // Which matrices keep their inputs: all of a module that trains; beside a low-rank pair; none.
  bool trains() const { return module.trainable == Trainable::full; }
  bool adapts() const { return module.trainable == Trainable::lora; }
  // Rows between blocks.
  std::int64_t input() const { return element() * own(size.tokens) * module.hidden; }
  std::int64_t statistics(std::int64_t rows) const {
    const bool two = module.kind == ModuleKind::diffusion || module.norm == Norm::layer;
    return (two ? 2 : 1) * wide() * rows;
  }
  // Inputs of the second matrices of so many low-rank pairs.
  std::int64_t low_rank(int pairs) const {
    return adapts() ? element() * size.tokens * pairs * module.lora_rank : 0;
  }
  // Whether a low-rank pair or the weight itself wants the input of a block's matrices.
  std::int64_t matrix_input() const { return trains() || adapts() ? input() : 0; }
  // Whether gradients pass through its attention.
  bool reaches_attention() const { return !starts || adapts(); }
};

}  // namespace polyphony
