#include "shared/layer_kernels.h"

namespace polyphony {

void LayerKernels::block_forward() {
  const std::int64_t rows = size_.tokens;
  norm(rows, hidden());
  forward_column(qkv());
  // RoPE on q and k: rotate (negate and join: 2), two products (2 + 2) and their sum (3): 5
  // launches each.
  if (!vision()) passes(rows * (query_width() + key_width()), 9, 10);
  attention(4, 2, 2);  // reads q, k, v; writes the output
  forward_row(attention_out());
  passes(rows * hidden(), 3, 1);  // residual sum
  norm(rows, hidden());
  forward_column(mlp_in());
  // SwiGLU: silu(gate) (2), product (3). GELU: 2.
  if (vision()) {
    passes(rows * ffn(), 2, 1);
  } else {
    passes(rows * ffn(), 5, 2);
  }
  forward_row(mlp_out());
  passes(rows * hidden(), 3, 1);
}

void LayerKernels::block_backward_input() {
  const std::int64_t rows = size_.tokens;
  input_gradient(mlp_out());
  // SwiGLU: the up gradient (3), the gate gradient before silu (3), silu's backward (3), both
  // joined (2 × 2). GELU: 3.
  if (vision()) {
    passes(rows * ffn(), 3, 1);
  } else {
    passes(rows * ffn(), 13, 4);
  }
  input_gradient_column(mlp_in());
  norm_backward(rows, hidden());
  passes(rows * hidden(), 3, 1);  // gradients of the two residual branches summed
  input_gradient(attention_out());
  attention(8, 4, 4);  // reads q, k, v, output, its gradient; writes three gradients
  if (!vision()) passes(rows * (query_width() + key_width()), 9, 10);
  input_gradient_column(qkv());
  norm_backward(rows, hidden());
  passes(rows * hidden(), 3, 1);
}

void LayerKernels::block_backward_weight() {
  weight_gradient(mlp_out());
  weight_gradient(mlp_in());
  norm_weight(size_.tokens, hidden());
  weight_gradient(attention_out());
  weight_gradient(qkv());
  norm_weight(size_.tokens, hidden());
}

void LayerKernels::head_forward() {
  const std::int64_t rows = size_.loss_tokens;
  passes(rows * hidden(), 2, 1);  // rows with a label
  norm(rows, hidden());
  forward_column(vocabulary());
  // Over [rows, V/tp]: widened (2), largest (1), shifted (2), exponentials (2), sum (1); target
  // logits picked out.
  add(KernelKind::loss, 0, rows * vocabulary().out * 8 * wide_element(), 8);
  reduce(CollectiveKind::all_reduce_max, rows * wide_element());
  reduce(CollectiveKind::all_reduce, rows * wide_element());  // sums of exponentials
  reduce(CollectiveKind::all_reduce, rows * wide_element());  // target logits
}

void LayerKernels::head_backward_input() {
  const std::int64_t rows = size_.loss_tokens;
  add(KernelKind::loss, 0, rows * vocabulary().out * 4 * wide_element(),
      4);  // probabilities − one-hot, scaled, narrowed
  input_gradient_column(vocabulary());
  norm_backward(rows, hidden());
  passes(size_.tokens * hidden() + 3 * rows * hidden(), 1, 2);  // zeros, then the labelled rows
}

void LayerKernels::forward() {
  switch (layer_) {
    case LayerKind::patch_embedding:
      forward_column(patches());
      passes(size_.tokens * hidden(), 3, 1);  // + position embedding
      return;
    case LayerKind::encoder_norm:
      norm(size_.tokens, hidden());
      return;
    case LayerKind::projector_mlp:
      passes(size_.tokens * module_.projector_in, 2, 1);  // merge² neighbours side by side
      forward_column(projector_in());
      passes(projector_in().rows * projector_in().out, 2, 1);  // GELU
      forward_row(projector_out());
      return;
    case LayerKind::token_embedding:
      add(KernelKind::embedding, 0, 2 * (size_.text_tokens + size_.tokens) * hidden() * element(),
          3);
      all_reduce(size_.text_tokens, hidden());
      return;
    case LayerKind::language_head:
      head_forward();
      return;
    case LayerKind::encoder_block:
    case LayerKind::decoder_block:
      block_forward();
      return;
  }
}

void LayerKernels::backward_input() {
  switch (layer_) {
    case LayerKind::patch_embedding:
      return;  // pixels have no gradient
    case LayerKind::encoder_norm:
      norm_backward(size_.tokens, hidden());
      return;
    case LayerKind::projector_mlp:
      input_gradient(projector_out());
      passes(projector_in().rows * projector_in().out, 3, 1);
      if (!input_grad_) return;  // nothing before fc1 has weights
      input_gradient_column(projector_in());
      passes(size_.tokens * module_.projector_in, 2, 1);
      return;
    case LayerKind::token_embedding:
      if (!input_grad_) return;
      add(KernelKind::embedding, 0, 2 * (size_.tokens - size_.text_tokens) * hidden() * element(),
          1);
      return;
    case LayerKind::language_head:
      head_backward_input();
      return;
    case LayerKind::encoder_block:
    case LayerKind::decoder_block:
      block_backward_input();
      return;
  }
}

void LayerKernels::backward_weight() {
  switch (layer_) {
    case LayerKind::patch_embedding:
      weight_gradient(patches());
      passes(size_.tokens * hidden(), 3, 1);  // position embedding's gradient
      return;
    case LayerKind::encoder_norm:
      norm_weight(size_.tokens, hidden());
      return;
    case LayerKind::projector_mlp:
      weight_gradient(projector_out());
      weight_gradient(projector_in());
      return;
    case LayerKind::token_embedding:
      add(KernelKind::embedding, 0, size_.text_tokens * hidden() * (element() + 2 * wide_element()),
          2);
      return;
    case LayerKind::language_head:
      weight_gradient(vocabulary());
      norm_weight(size_.loss_tokens, hidden());
      return;
    case LayerKind::encoder_block:
    case LayerKind::decoder_block:
      block_backward_weight();
      return;
  }
}

}  // namespace polyphony
