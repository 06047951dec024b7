#include "shared/layers/layer_kernels.h"

namespace polyphony {

void LayerKernels::rotate() {
  // RoPE on q and k: rotate (negate and join: 2), two products (2 + 2) and their sum (3): 5
  // launches each.
  if (rotates()) passes(size_.tokens * (query_width() + key_width()), 9, 10);
}

void LayerKernels::core_attention() {
  if (!context()) rotate();
  attention(4, 2, 2);  // reads q, k, v; writes the output
}

void LayerKernels::feed_forward() {
  if (sparse()) return experts_forward();
  forward_column(mlp_in());
  // SwiGLU: silu(gate) (2), product (3). GELU: 2.
  if (module_.gated) {
    passes(size_.tokens * ffn(), 5, 2);
  } else {
    passes(size_.tokens * ffn(), 2, 1);
  }
  forward_row(mlp_out());
}

void LayerKernels::feed_forward_backward_input() {
  if (sparse()) return experts_backward_input();
  input_gradient_row(mlp_out());
  // SwiGLU: the up gradient (3), the gate gradient before silu (3), silu's backward (3), both
  // joined (2 × 2). GELU: 3.
  if (module_.gated) {
    passes(size_.tokens * ffn(), 13, 4);
  } else {
    passes(size_.tokens * ffn(), 3, 1);
  }
  input_gradient_column(mlp_in());
}

void LayerKernels::block_forward() {
  const std::int64_t rows = size_.tokens, between = own(rows);
  norm(between, hidden());
  if (latent()) {
    latent_forward();
  } else {
    forward_column(qkv());
    head_norm();
    if (context()) {
      rotate();
      move_keys(CollectiveKind::all_gather);
    }
    core_attention();
  }
  forward_row(attention_out());
  passes(between * hidden(), 3, 1);  // residual sum
  norm(between, hidden());
  feed_forward();
  passes(between * hidden(), 3, 1);
}

void LayerKernels::block_backward_input(bool attention_again) {
  const std::int64_t rows = size_.tokens, between = own(rows);
  feed_forward_backward_input();
  norm_backward(between, hidden());
  passes(between * hidden(), 3, 1);  // gradients of the two residual branches summed
  if (attention_again && latent()) {
    latent_rotate();
    latent_attention(2);
  }
  if (attention_again && !latent()) core_attention();
  input_gradient_row(attention_out());
  if (latent()) {
    latent_backward_input();
    if (lora() && !input_grad_) return;
    norm_backward(between, hidden());
    return passes(between * hidden(), 3, 1);
  }
  attention(8, 4, 4);  // reads q, k, v, output, its gradient; writes three gradients
  move_keys(CollectiveKind::reduce_scatter);
  if (rotates()) passes(rows * (query_width() + key_width()), 9, 10);
  head_norm_backward();
  if (lora() && !input_grad_) {  // a LoRA module's first block: only its pairs train
    if (sequence()) gather(rows, hidden());
    return low_rank_backward(qkv(), false);
  }
  input_gradient_column(qkv());
  norm_backward(between, hidden());
  passes(between * hidden(), 3, 1);
}

void LayerKernels::block_backward_weight() {
  if (sparse()) {
    experts_backward_weight();
  } else {
    weight_gradient(mlp_out());
    weight_gradient(mlp_in());
  }
  norm_weight(own(size_.tokens), hidden());
  weight_gradient(attention_out());
  head_norm_weight();
  latent() ? latent_backward_weight() : weight_gradient(qkv());
  norm_weight(own(size_.tokens), hidden());
}

void LayerKernels::head_forward() {
  const std::int64_t rows = size_.loss_tokens;
  passes(own(rows) * hidden(), 2, 1);  // rows with a label
  norm(own(rows), hidden());
  if (sequence()) reduce(CollectiveKind::all_gather, rows * hidden() * element());
  forward_cut(vocabulary());
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
  const std::int64_t bytes = rows * hidden() * element();  // of parts as they are, not padded
  if (sequence() && context_.weight_grad && !lora()) reduce(CollectiveKind::all_gather, bytes);
  input_gradient(vocabulary());
  reduce(sequence() ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, bytes);
  norm_backward(own(rows), hidden());
  // Zeros, then the labelled rows.
  passes((own(size_.tokens) + 3 * own(rows)) * hidden(), 1, 2);
}

void LayerKernels::embedding_forward() {
  const std::int64_t text = size_.text_tokens, other = size_.tokens - text;
  if (!sequence()) {
    // Looked up (2), put beside the other rows and brought into order.
    add(KernelKind::embedding, 0, 2 * (text + size_.tokens) * hidden() * element(), 3);
    all_reduce(text, hidden());
    return;
  }
  // Looked up (2), put beside the rank's other rows (2), placed (2) among zeros (1).
  const std::int64_t passed = 2 * text + 4 * (text + own(other)) + size_.tokens;
  add(KernelKind::embedding, 0, passed * hidden() * element(), 4);
  scatter(size_.tokens, hidden());
}

void LayerKernels::forward() {
  switch (layer_) {
    case LayerKind::patch_embedding:
      patches_forward();
      return;
    case LayerKind::audio_embedding:
      audio_forward();
      return;
    case LayerKind::encoder_norm:
      encoder_norm_forward();
      return;
    case LayerKind::projector_linear:
      linear_projector_forward();
      return;
    case LayerKind::projector_mlp:
      if (sequence()) gather(source_rows(), source_width());
      passes(size_.tokens * module_.projector_in, 2, 1);  // merge² neighbours side by side
      forward_cut(projector_in());
      passes(projector_in().rows * projector_in().out, 2, 1);  // GELU
      forward_row(projector_out());
      return;
    case LayerKind::token_embedding:
      embedding_forward();
      return;
    case LayerKind::language_head:
      head_forward();
      return;
    case LayerKind::latent_embedding:
      latents_forward();
      return;
    case LayerKind::diffusion_block:
      diffusion_forward();
      return;
    case LayerKind::diffusion_head:
      flow_forward();
      return;
    case LayerKind::encoder_block:
    case LayerKind::decoder_block:
      block_forward();
      return;
  }
}

void LayerKernels::backward_input(Recompute recompute) {
  if (recompute == Recompute::full) forward();
  switch (layer_) {
    case LayerKind::patch_embedding:  // pixels have no gradient
      if (module_.class_token && !lora()) passes(patches().rows * hidden(), 2, 1);
      return;
    case LayerKind::audio_embedding:
      audio_backward_input();
      return;
    case LayerKind::encoder_norm:
      encoder_norm_backward_input();
      return;
    case LayerKind::projector_linear:
      linear_projector_backward_input();
      return;
    case LayerKind::projector_mlp:
      projector_backward_input();
      return;
    case LayerKind::token_embedding:
      if (lora() && !input_grad_) return;
      if (sequence()) gather(size_.tokens, hidden());
      if (!input_grad_) return;
      add(KernelKind::embedding, 0,
          2 * own(size_.tokens - size_.text_tokens) * hidden() * element(), 1);
      return;
    case LayerKind::language_head:
      head_backward_input();
      return;
    case LayerKind::latent_embedding:
      return;  // latents have no gradient
    case LayerKind::diffusion_block:
      diffusion_backward_input(recompute == Recompute::selective);
      return;
    case LayerKind::diffusion_head:
      flow_backward_input();
      return;
    case LayerKind::encoder_block:
    case LayerKind::decoder_block:
      block_backward_input(recompute == Recompute::selective);
      return;
  }
}

void LayerKernels::backward_weight() {
  if (lora() && layer_ != LayerKind::encoder_block && layer_ != LayerKind::decoder_block &&
      layer_ != LayerKind::diffusion_block)
    return;
  switch (layer_) {
    case LayerKind::patch_embedding:
      weight_gradient(patches());
      if (module_.class_token) passes(size_.sequences * hidden(), 2, 3);
      if (!module_.rotary)
        passes(own(embedded_rows()) * hidden(), 3, 1);  // position embedding's gradient
      return;
    case LayerKind::audio_embedding:
      weight_gradient(conv2());
      weight_gradient(conv1());
      return;
    case LayerKind::encoder_norm:
      norm_weight(own(size_.tokens), hidden());
      return;
    case LayerKind::projector_mlp:
      weight_gradient(projector_out());
      weight_gradient(projector_in());
      return;
    case LayerKind::projector_linear:
      weight_gradient(projector_whole());
      return;
    case LayerKind::token_embedding:
      add(KernelKind::embedding, 0, size_.text_tokens * hidden() * (element() + 2 * wide_element()),
          2);
      return;
    case LayerKind::language_head:
      weight_gradient(vocabulary());
      norm_weight(own(size_.loss_tokens), hidden());
      return;
    case LayerKind::latent_embedding:
      weight_gradient(latents_in());
      return;
    case LayerKind::diffusion_block:
      diffusion_backward_weight();
      return;
    case LayerKind::diffusion_head:
      flow_backward_weight();
      return;
    case LayerKind::encoder_block:
    case LayerKind::decoder_block:
      block_backward_weight();
      return;
  }
}

}  // namespace polyphony
