#include "shared/layers/block.h"

#include "shared/layers/experts.h"
#include "shared/layers/feed_forward.h"
#include "shared/layers/latent_attention.h"
#include "shared/layers/linear_attention.h"
#include "shared/layers/self_attention.h"
#include "shared/layers/short_convolution.h"

namespace polyphony {
namespace {

std::int64_t nothing(const LayerBytes&) { return 0; }

template <class Part>
constexpr BlockPart common() {
  return {.parameters = Part::parameters,
          .forward = [](const LayerKernels& layer) { Part(layer).forward(); },
          .backward_input =
              [](const LayerKernels& layer, bool again) {
                if constexpr (requires(Part part) { part.recompute_attention(); })
                  Part(layer).backward_input(again);
                else
                  Part(layer).backward_input();
              },
          .backward_weight = [](const LayerKernels& layer) { Part(layer).backward_weight(); },
          .tape = Part::tape,
          .recomputed_bytes = nothing,
          .received_again_bytes = nothing,
          .choices = nothing,
          .refused = [](const Module&, const ModuleLayout&) { return std::string(); }};
}
template <class Part>
constexpr BlockPart attention() {
  BlockPart part = common<Part>();
  part.recomputed_bytes = Part::recomputed_bytes;
  part.refused = Part::refused;
  return part;
}

constexpr BlockPart kSelfAttention = [] {
  BlockPart part = attention<SelfAttention>();
  part.received_again_bytes = SelfAttention::received_again_bytes;
  return part;
}();
constexpr BlockPart kLatentAttention = attention<LatentAttention>();
constexpr BlockPart kLinearAttention = attention<LinearAttention>();
constexpr BlockPart kShortConvolution = attention<ShortConvolution>();
constexpr BlockPart kFeedForward = common<FeedForward>();
constexpr BlockPart kExperts = [] {
  BlockPart part = common<Experts>();
  part.choices = Experts::choices;
  return part;
}();

}  // namespace

const BlockPart& block_part(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::full:
    case AttentionKind::window:
      return kSelfAttention;
    case AttentionKind::latent:
      return kLatentAttention;
    case AttentionKind::linear:
      return kLinearAttention;
    case AttentionKind::convolution:
      return kShortConvolution;
  }
  return kSelfAttention;
}

const BlockPart& block_part(FeedForwardKind kind) {
  switch (kind) {
    case FeedForwardKind::dense:
      return kFeedForward;
    case FeedForwardKind::experts:
      return kExperts;
  }
  return kFeedForward;
}

void Block::parameters(LayerParameters add) {
  const Module& m = add.module();
  const BlockKind kind = block_at(m, add.layer() - 1);
  add.norm("norm1");
  block_part(kind.attention).parameters(add);
  if (m.post_norms) add.norm("post_norm1");
  if (m.layer_scale != 0) add.scale("scale1");
  add.norm("norm2");
  block_part(kind.feed_forward).parameters(add);
  if (m.post_norms) add.norm("post_norm2");
  if (m.layer_scale != 0) add.scale("scale2");
}

// Norms or scales what a part adds to the residual stream.
void Block::adapt_output() {
  if (module_.post_norms) norm(own(size_.tokens), hidden());
  if (module_.layer_scale != 0) passes(between_blocks(), 2, 1);
}
void Block::adapt_output_backward() {
  if (module_.post_norms) norm_backward(own(size_.tokens), hidden());
  if (module_.layer_scale == 0) return;
  passes(between_blocks(), 2, 1);
  if (!norms_train()) return;
  // The gradient widened (2), multiplied by the saved output (3), summed over the rows (1).
  const std::int64_t wide = wide_element(), widened = element() < wide ? element() + wide : 0;
  add(KernelKind::elementwise, 0, between_blocks() * (widened + 3 * wide + element()),
      widened > 0 ? 3 : 2);
}

void Block::forward() {
  norm(own(size_.tokens), hidden());
  block_part(block_.attention).forward(*this);
  adapt_output();
  passes(between_blocks(), 3, 1);  // residual sum
  norm(own(size_.tokens), hidden());
  block_part(block_.feed_forward).forward(*this);
  adapt_output();
  passes(between_blocks(), 3, 1);
}

void Block::backward_input(bool attention_again) {
  adapt_output_backward();
  block_part(block_.feed_forward).backward_input(*this, false);
  norm_backward(own(size_.tokens), hidden());
  passes(between_blocks(), 3, 1);  // gradients of the two residual branches summed
  const BlockPart& attention = block_part(block_.attention);
  adapt_output_backward();
  attention.backward_input(*this, attention_again);
  if (lora() && !input_grad_) return;  // first block of a LoRA module: nothing before it trains
  norm_backward(own(size_.tokens), hidden());
  passes(between_blocks(), 3, 1);
}

void Block::backward_weight() {
  block_part(block_.feed_forward).backward_weight(*this);
  block_part(block_.attention).backward_weight(*this);
  norm_weights(module_.post_norms ? 4 : 2);
  if (module_.layer_scale != 0 && norms_train()) more_launches(2);  // added to the gradients
}

std::int64_t Block::tape(const LayerBytes& bytes) {
  const BlockPart &attention = block_part(bytes.block.attention),
                  &feed_forward = block_part(bytes.block.feed_forward);
  if (bytes.recompute == Recompute::full) return bytes.input() + feed_forward.choices(bytes);
  const int posts = !bytes.module.post_norms ? 0 : bytes.reaches_attention() ? 2 : 1;
  // A part's output is the rank's padded share of the rows.
  const RowShares shares{bytes.size.tokens, bytes.context.sp ? bytes.context.tp : 1};
  const std::int64_t output = bytes.element() * shares.share() * bytes.module.hidden;
  const std::int64_t post = posts * (output + bytes.statistics(bytes.own(bytes.size.tokens)));
  const std::int64_t scaled = bytes.module.layer_scale != 0 && bytes.trains() ? 2 * output : 0;
  return norms(bytes) + post + scaled + attention.tape(bytes) + feed_forward.tape(bytes);
}

}  // namespace polyphony
