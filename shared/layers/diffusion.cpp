#include "shared/layers/diffusion.h"

#include "shared/layers/block.h"
#include "shared/layers/cross_attention.h"
#include "shared/layers/feed_forward.h"
#include "shared/layers/self_attention.h"

namespace polyphony {

void LatentEmbedding::parameters(LayerParameters add) {
  const Module& m = add.module();
  LayerParameters own = add.under("latent_embedding");
  own.matrix("weight", m.hidden, latent_width(m), Cut::replicated, Rows::own);
  own.vector("bias", m.hidden, Cut::replicated, Initial::zeros);
}

Linear LatentEmbedding::in() const {
  return {own(size_.tokens), latent_width(module_), hidden(), true};
}
void LatentEmbedding::forward() {
  passes(in().rows * in().in, 3, size_.sequences);  // interpolates noise and latent
  forward_cut(in());
  // Position features of all rows written per axis and concatenated (2 + 2); own rows added.
  passes(size_.tokens * hidden(), 4, 4 * size_.sequences);
  passes(between_blocks(), 3, 1);
}

void LatentEmbedding::backward_weight() { weight_gradient(in()); }

std::int64_t LatentEmbedding::tape(const LayerBytes& bytes) {
  return bytes.trains()
             ? bytes.element() * bytes.own(bytes.size.tokens) * latent_width(bytes.module)
             : 0;
}

void DiffusionBlock::parameters(LayerParameters add) {
  modulation_parameters(add, 6);
  SelfAttention::parameters(add);
  if (add.module().condition > 0) CrossAttention::parameters(add);
  FeedForward::parameters(add);
}

void DiffusionBlock::forward() {
  modulation(6);
  adaptive_norm();
  SelfAttention(*this).forward();
  gated_sum();
  if (module_.condition > 0) CrossAttention(*this).forward();
  adaptive_norm();
  FeedForward(*this).forward();
  gated_sum();
}

void DiffusionBlock::backward_input(bool attention_again) {
  gated_sum_backward();
  FeedForward(*this).backward_input();
  adaptive_norm_backward();
  passes(between_blocks(), 3, 1);  // gradients of the two branches summed
  if (module_.condition > 0 && !CrossAttention(*this).backward_input()) return;
  gated_sum_backward();
  SelfAttention(*this).backward_input(attention_again);
  if (!input_grad_) return;  // first block of a LoRA module: nothing before its pairs trains
  adaptive_norm_backward();
  passes(between_blocks(), 3, 1);
  modulation_backward(6);
}

void DiffusionBlock::backward_weight() {
  FeedForward(*this).backward_weight();
  if (module_.condition > 0) CrossAttention(*this).backward_weight();
  SelfAttention(*this).backward_weight();
  modulation_weight(6);
}

std::int64_t DiffusionBlock::tape(const LayerBytes& bytes) {
  if (bytes.recompute == Recompute::full) return bytes.input();
  const Module& m = bytes.module;
  const int norms = bytes.starts ? 1 : 2;
  const std::int64_t modulated =
      bytes.size.sequences *
      (bytes.element() * (6 * std::int64_t{m.hidden} + (bytes.trains() ? 2 * m.modulation : 0)) +
       norms * adaptive_bytes(bytes));
  // A part's output is the rank's padded share of the rows.
  const RowShares shares{bytes.size.tokens, bytes.context.sp ? bytes.context.tp : 1};
  const std::int64_t branches =
      bytes.trains() ? 2 * bytes.element() * shares.share() * m.hidden : 0;
  return Block::norms(bytes) + SelfAttention::tape(bytes) + FeedForward::tape(bytes) + modulated +
         branches + (m.condition > 0 ? CrossAttention::tape(bytes) : 0);
}

std::int64_t DiffusionBlock::input_kept(const LayerBytes& bytes) {
  return Block::input_kept(bytes);
}

void DiffusionHead::parameters(LayerParameters add) {
  const Module& m = add.module();
  LayerParameters own = add.under("head");
  modulation_parameters(own, 2);
  own.zero_matrix("output.weight", latent_width(m), m.hidden, Rows::own);
  own.vector("output.bias", latent_width(m), Cut::replicated, Initial::zeros);
}

Linear DiffusionHead::out() const {
  return {own(size_.tokens), hidden(), latent_width(module_), true};
}

void DiffusionHead::forward() {
  modulation(2);
  adaptive_norm();
  forward_cut(out());
  // Passes: minus latent (3), plus noise (3), squared (2), summed (1).
  add(KernelKind::loss, 0, out().rows * out().out * 9 * wide_element(), 4);
  if (sequence()) reduce(CollectiveKind::all_reduce, wide_element());  // sum over the ranks' rows
}
void DiffusionHead::backward_input(bool) {
  add(KernelKind::loss, 0, out().rows * out().out * 2 * wide_element(), 1);
  input_gradient(out());
  adaptive_norm_backward();
  modulation_backward(2);
}
void DiffusionHead::backward_weight() {
  weight_gradient(out());
  modulation_weight(2);
}

std::int64_t DiffusionHead::tape(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const std::int64_t own = bytes.own(bytes.size.tokens), hidden = m.hidden;
  const std::int64_t modulated = (bytes.element() < 4 ? 0 : bytes.element() * 2 * hidden) +
                                 (bytes.trains() ? bytes.element() * 2 * m.modulation : 0) +
                                 adaptive_bytes(bytes);
  return (bytes.trains() ? 2 : 1) * bytes.input() + 2 * bytes.wide() * own +
         bytes.size.sequences * modulated + bytes.wide() * own * latent_width(m);
}

}  // namespace polyphony
