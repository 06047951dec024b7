// Kernels of the LoRA pair of a linear layer (shared/kernels/lora.h): forward h = s A x, y += B h;
// backward g = s Bᵀ dy, dx += Aᵀ g, dA += g xᵀ, dB += dy hᵀ. Source: LoRA, arXiv 2106.09685, §4.1;
// memory passes: own count of what exec/ does.
#include "shared/kernels/layer_kernels.h"

namespace polyphony {

void LayerKernels::low_rank_down(const Linear& l) {
  const std::int64_t r = l.low_rank;
  if (r == 0) return;
  gemm(l.rows, r, l.in, (l.rows * l.in + l.in * r + l.rows * r) * element());
  passes(l.rows * r, 2, 1);
}

void LayerKernels::low_rank_up(const Linear& l) {
  const std::int64_t r = l.low_rank;
  if (r == 0) return;
  gemm(l.rows, l.out, r, (l.rows * r + r * l.out + 2 * l.rows * l.out) * element());
}

void LayerKernels::low_rank_below(const Linear& l) {
  const std::int64_t r = l.low_rank;
  if (r == 0) return;
  gemm(l.rows, r, l.out, (l.rows * l.out + l.out * r + l.rows * r) * element());
  passes(l.rows * r, 2, 1);
}

void LayerKernels::low_rank_input(const Linear& l) {
  const std::int64_t r = l.low_rank;
  if (r == 0) return;
  gemm(l.rows, l.in, r, (l.rows * r + r * l.in + 2 * l.rows * l.in) * element());
}

void LayerKernels::low_rank_backward(const Linear& l, bool input_grad) {
  low_rank_below(l);
  if (input_grad) low_rank_input(l);
}

void LayerKernels::low_rank_weight(const Linear& l) {
  const std::int64_t r = l.low_rank;
  if (r == 0) return;
  gemm(r, l.in, l.rows, l.rows * (r + l.in) * element() + 2 * r * l.in * wide_element());
  gemm(l.out, r, l.rows, l.rows * (r + l.out) * element() + 2 * r * l.out * wide_element());
}

}  // namespace polyphony
