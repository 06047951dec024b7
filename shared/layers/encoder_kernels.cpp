// The kernels and inner collectives of what only some stacks have (shared/layers/layer_kernels.h):
// norms of heads, the first and last layers of encoders, projectors. Source: own count of what
// exec/ does, beside each.
#include "shared/layers/layer_kernels.h"

namespace polyphony {

void LayerKernels::head_norm() {
  if (!module_.qk_norm) return;
  // All copied (2); of q and k squares and their mean (1), scaled (2), times the weight (2), put in
  // place (2).
  passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);
  passes(size_.tokens * (query_width() + key_width()), 7, 4);
}

void LayerKernels::head_norm_backward() {
  if (!module_.qk_norm) return;
  // dy∘w (2), its part along x (3 + 1), scaled (2), less that part (3), put in place (2); all
  // copied.
  passes(size_.tokens * (query_width() + key_width()), 13, 6);
  passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);
}

void LayerKernels::head_norm_weight() {  // dy∘x (3), scaled (2), summed (1): by q and by k
  if (module_.qk_norm && !lora()) passes(size_.tokens * (query_width() + key_width()), 6, 7);
}

void LayerKernels::patches_forward() {
  const std::int64_t rows = own(embedded_rows());
  forward_cut(patches());
  if (module_.class_token) passes(rows * hidden(), 2, 2);
  if (!module_.rotary) passes(rows * hidden(), 3, 1);  // + position embedding
}

// Rows of three frames gathered (2), GELU (2); fixed positions added (3).
void LayerKernels::audio_forward() {
  passes(conv1().rows * conv1().in, 2, 1);
  forward_cut(conv1());
  passes(conv1().rows * hidden(), 2, 1);
  passes(conv2().rows * conv2().in, 2, 1);
  forward_cut(conv2());
  passes(conv2().rows * hidden(), 5, 2);
}

void LayerKernels::audio_backward_input() {  // frames have no gradient
  if (lora()) return;
  passes(conv2().rows * hidden(), 3, 1);
  input_gradient(conv2());
  passes(conv2().rows * conv2().in, 3, 2);  // zeros, then each frame's parts added up
  passes(conv1().rows * hidden(), 3, 1);
}

// Class tokens leave; own rows of what stays are others.
void LayerKernels::encoder_norm_forward() {
  if (module_.class_token) {
    if (sequence()) gather(embedded_rows(), hidden());
    passes(own(size_.tokens) * hidden(), 2, 1);
  }
  norm(own(size_.tokens), hidden());
}

void LayerKernels::encoder_norm_backward_input() {
  norm_backward(own(size_.tokens), hidden());
  if (!module_.class_token) return;
  passes((embedded_rows() + 2 * own(size_.tokens)) * hidden(), 1, 2);  // zeros, then the rows
  if (sequence()) scatter(embedded_rows(), hidden());
}

void LayerKernels::linear_projector_forward() {
  if (joins_rows()) gather(source_rows(), source_width());
  if (merged_rows(module_) > 1) passes(size_.tokens * module_.projector_in, 2, 1);
  forward_cut(projector_whole());
}

void LayerKernels::linear_projector_backward_input() {
  if (!input_grad_) return;
  input_gradient(projector_whole());
  if (merged_rows(module_) > 1) passes(size_.tokens * module_.projector_in, 2, 1);
  if (joins_rows()) scatter(source_rows(), source_width());
}

void LayerKernels::projector_backward_input() {
  const Linear in = projector_in();
  input_gradient_row(projector_out());
  passes(in.rows * in.out, 3, 1);
  if (sequence() && context_.weight_grad) {  // fc1's input again, and side by side
    gather(source_rows(), source_width());
    passes(in.rows * in.in, 2, 1);
  }
  if (!input_grad_) return;  // nothing before fc1 has weights
  input_gradient(in);
  if (!sequence()) all_reduce(in.rows, in.in);
  passes(in.rows * in.in, 2, 1);
  if (sequence()) scatter(source_rows(), source_width());
}

}  // namespace polyphony
