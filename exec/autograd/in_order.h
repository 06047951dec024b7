// Sums in a fixed order on GPUs (`--deterministic`), by LibTorch's deterministic algorithms.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec {

// Applies to the whole process: sums gradients of attention and of tables that are read by ids in a
// fixed order. For few heads this costs flash attention another copy of the queries' gradients in
// fp32; rows of tables are sorted by id. The LibTorch setting is on only during these calls,
// because some other operators refuse to run under it.
void keep_order(bool keep);
bool keeps_order();

// LibTorch's deterministic algorithms are on while any thread has such an object, if order is kept.
class InOrder {
 public:
  InOrder();
  ~InOrder();
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;

 private:
  bool on_;
};

// Adds each row of `rows` [n, width] to the row of `table` that `ids` [n] names.
void add_at(torch::Tensor& table, const torch::Tensor& ids, const torch::Tensor& rows);

}  // namespace polyphony::exec
