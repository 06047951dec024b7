// Kernels and inner collectives of the diffusion layers (exec/layers/diffusion.h), and of rows that edges
// bring a chunk beside its main input (exec/edge_rows.h). n items; one kernel each where items
// differ: adaptive norms, gates, cross-attention. Source: own count of what exec/ does; the
// products' FLOPs as DiT's (arXiv 2212.09748) and Wan's own count.
#include "shared/layers/layer_kernels.h"
#include "shared/layers/parameters.h"

namespace polyphony {
namespace {

Linear with_bias(Linear linear) {
  linear.bias = true;
  return linear;
}

}  // namespace

// Shifts, scales and gates (`parts`) of n items.
Linear LayerKernels::time_in() const {
  return {size_.sequences, kTimeFeatures, module_.modulation, true};
}
Linear LayerKernels::time_out(int parts) const {
  return {size_.sequences, module_.modulation, parts * hidden(), true};
}
void LayerKernels::modulation(int parts) {
  forward_cut(time_in());
  passes(time_in().rows * time_in().out, 2, 1);  // SiLU
  forward_cut(time_out(parts));
}
// Nothing is upstream of time: all of it is for the weights' sake.
void LayerKernels::modulation_backward(int parts) {
  if (!trains_base()) return;
  passes(time_out(parts).rows * time_out(parts).out, 2, 1);  // parts side by side
  input_gradient(time_out(parts));
  passes(time_in().rows * time_in().out, 3, 1);
}
void LayerKernels::modulation_weight(int parts) {
  weight_gradient(time_out(parts));
  weight_gradient(time_in());
}

void LayerKernels::joined() {  // parts of several items copied into one matrix
  if (size_.sequences != 1) passes(between_blocks(), 2, 1);
}
void LayerKernels::adaptive_norm() {
  passes(size_.sequences * hidden(), 2, 1);  // 1 + scale
  passes(between_blocks(), 2, size_.sequences);
  joined();
}
void LayerKernels::adaptive_norm_backward() {
  passes(between_blocks(), 3, size_.sequences);
  if (trains_base()) passes(between_blocks(), 2, 2 * size_.sequences);
  joined();
}
// x + gate∘y
void LayerKernels::gated_sum() { passes(between_blocks(), 3, size_.sequences); }
void LayerKernels::gated_sum_backward() {
  passes(between_blocks(), 2, size_.sequences);
  if (trains_base())  // dout∘y (3), summed by column (1)
    passes(between_blocks(), 4, 2 * size_.sequences);
}

Linear LayerKernels::diffusion_fc1() const {
  return {size_.tokens, hidden(), ffn(), true, low_rank()};
}
Linear LayerKernels::diffusion_fc2() const {
  return {size_.tokens, ffn(), hidden(), true, low_rank()};
}
Linear LayerKernels::cross_query() const {
  return {size_.tokens, hidden(), query_width(), true, low_rank()};
}
Linear LayerKernels::cross_key_value() const {
  return {size_.condition, module_.condition, 2 * query_width(), true, low_rank()};
}

void LayerKernels::cross_attention(double flops_per_pair_and_width, int q_like, int k_like) {
  const double width = static_cast<double>(query_width());
  const std::int64_t elements = (q_like * size_.tokens + k_like * size_.condition) * query_width();
  add(KernelKind::attention,
      flops_per_pair_and_width * static_cast<double>(size_.cross_pairs) * width,
      elements * element(), std::max(1, size_.sequences), 0, 0, module_.head_dim);
}

void LayerKernels::diffusion_forward() {
  modulation(6);
  adaptive_norm();
  forward_column(with_bias(qkv()));
  attention(4, 2, 2);
  forward_row(with_bias(attention_out()));
  gated_sum();
  if (module_.condition > 0) {
    norm(own(size_.tokens), hidden());
    forward_column(cross_query());
    forward_cut(cross_key_value());
    cross_attention(4, 2, 2);
    forward_row(with_bias(attention_out()));
    passes(between_blocks(), 3, 1);
  }
  adaptive_norm();
  forward_column(diffusion_fc1());
  passes(size_.tokens * ffn(), 2, 1);
  forward_row(diffusion_fc2());
  gated_sum();
}

void LayerKernels::diffusion_backward_input(bool attention_again) {
  gated_sum_backward();
  input_gradient_row(diffusion_fc2());
  passes(size_.tokens * ffn(), 3, 1);
  input_gradient_column(diffusion_fc1());
  adaptive_norm_backward();
  passes(between_blocks(), 3, 1);  // gradients of the two branches summed
  if (module_.condition > 0 && !across_backward_input()) return;
  gated_sum_backward();
  if (attention_again) core_attention();
  input_gradient_row(with_bias(attention_out()));
  attention(8, 4, 4);
  if (!input_grad_) {  // a LoRA module's first block: only its pairs train
    if (sequence()) gather(size_.tokens, hidden());
    return low_rank_backward(qkv(), false);
  }
  input_gradient_column(with_bias(qkv()));
  adaptive_norm_backward();
  passes(between_blocks(), 3, 1);
  modulation_backward(6);
}

// False when nothing before needs a gradient: the first block of a frozen module.
bool LayerKernels::across_backward_input() {
  input_gradient_row(with_bias(attention_out()));
  cross_attention(8, 4, 4);
  if (conditioning_grad()) {
    input_gradient(cross_key_value());
    passes(size_.condition * module_.condition, 3, 1);  // added to the other blocks'
  } else {
    low_rank_backward(cross_key_value(), false);
  }
  if (!input_grad_ && !lora()) return false;
  input_gradient_column(cross_query());
  norm_backward(own(size_.tokens), hidden());
  passes(between_blocks(), 3, 1);
  return true;
}

void LayerKernels::diffusion_backward_weight() {
  weight_gradient(diffusion_fc2());
  weight_gradient(diffusion_fc1());
  if (module_.condition > 0) {
    weight_gradient(with_bias(attention_out()));
    weight_gradient(cross_key_value());
    weight_gradient(cross_query());
    norm_weight(own(size_.tokens), hidden());
  }
  weight_gradient(with_bias(attention_out()));
  weight_gradient(with_bias(qkv()));
  modulation_weight(6);
}

Linear LayerKernels::latents_in() const {
  return {own(size_.tokens), latent_width(module_), hidden(), true};
}
Linear LayerKernels::latents_out() const {
  return {own(size_.tokens), hidden(), latent_width(module_), true};
}

void LayerKernels::latents_forward() {
  passes(latents_in().rows * latents_in().in, 3, size_.sequences);  // between noise and latent
  forward_cut(latents_in());
  // Positions of all rows written by axis and joined (2 + 2); a rank's own added.
  passes(size_.tokens * hidden(), 4, 4 * size_.sequences);
  passes(between_blocks(), 3, 1);
}

void LayerKernels::flow_forward() {
  modulation(2);
  adaptive_norm();
  forward_cut(latents_out());
  // − latent (3), + noise (3), squared (2), summed (1)
  add(KernelKind::loss, 0, latents_out().rows * latents_out().out * 9 * wide_element(), 4);
  if (sequence()) reduce(CollectiveKind::all_reduce, wide_element());  // every rank's rows
}
void LayerKernels::flow_backward_input() {
  add(KernelKind::loss, 0, latents_out().rows * latents_out().out * 2 * wide_element(), 1);
  input_gradient(latents_out());
  adaptive_norm_backward();
  modulation_backward(2);
}
void LayerKernels::flow_backward_weight() {
  weight_gradient(latents_out());
  modulation_weight(2);
}

void LayerKernels::edges_in(bool reads_conditioning) {
  if (reads_conditioning && sequence()) gather(size_.condition, module_.condition);
  const std::int64_t others = size_.tokens - size_.text_tokens;
  // A copy, then the rows added; with rows of its own a rank places those it has among zeros.
  const std::int64_t rows =
      sequence() ? size_.tokens + 2 * own(others) : 2 * size_.tokens + 3 * others;
  for (int edge = 0; edge < context_.added_edges; ++edge)
    add(KernelKind::embedding, 0, rows * hidden() * element(), 2);
  if (context_.added_edges == 0 || !sequence()) return;
  scatter(size_.tokens, hidden());
  passes(between_blocks(), 3, context_.added_edges);
}

void LayerKernels::edges_out(bool reads_conditioning) {
  if (!conditioning_grad()) return;
  // Of all blocks together: each rank has what its heads read.
  if (reads_conditioning) sum(size_.condition, module_.condition);
  if (context_.added_edges > 0 && sequence()) gather(size_.tokens, hidden());
  for (int edge = 0; edge < context_.added_edges; ++edge)
    add(KernelKind::embedding, 0, 2 * own(size_.tokens - size_.text_tokens) * hidden() * element(),
        1);
}

}  // namespace polyphony
