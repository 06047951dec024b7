// The tensors of a transformer block under other frameworks (shared/held/stack_sizes.h).
#include <algorithm>

#include "shared/held/stack_sizes.h"
#include "shared/work/row_shares.h"

namespace polyphony {
namespace {

// Returns the bytes of a tensor of `elements` as an operand of weight GEMMs.
std::int64_t operand_bytes(const SoftwareStack& stack, NumberFormat precision,
                           std::int64_t elements) {
  const bool cast = stack.memory.keeping == Keeping::transformer_engine;
  if (cast && stack.matrix == NumberFormat::fp8) return elements;
  if (cast && stack.matrix == NumberFormat::nvfp4) return elements * 9 / 16;  // a scale for 16
  return elements * size_of(precision).value;
}

// Returns the number of scores of every row with every row of its sequence, masked ones included.
// Causal pairs n(n + 1)/2 are converted back exactly; under another mask, or a window, sequences of
// equal length are assumed, and no fewer scores than attended pairs.
std::int64_t squares(const Module& module, BlockKind kind, const WorkSize& size) {
  if (module.kind != ModuleKind::language) return size.pairs;
  if (module.mask == Mask::causal && kind.attention != AttentionKind::window)
    return 2 * size.pairs - size.tokens;
  const std::int64_t rows = std::max(size.gathered, size.tokens);
  return std::max(size.pairs, size.tokens * rows / std::max(1, size.samples));
}

class Block {
 public:
  Block(const SoftwareStack& stack, const Module& module, BlockKind kind, const WorkSize& size,
        const RankContext& context)
      : stack_(stack),
        memory_(stack.memory),
        module_(module),
        kind_(kind),
        precision_(context.precision) {
    const std::int64_t tokens = size.tokens, tp = context.tp;
    own_ = context.sp ? RowShares{tokens, context.tp}.count(context.tensor_index) : tokens;
    cut_ = context.tp > 1;
    shared_rows_ = cut_ && context.sp;
    spread_ = context.cp > 1;
    stream_ = own_ * module.hidden;
    whole_ = tokens * module.hidden;
    const std::int64_t heads = tokens * (module.heads / tp),
                       keys = tokens * std::max<std::int64_t>(1, module.kv_heads / tp);
    if (kind.attention == AttentionKind::latent) {
      query_ = key_ = heads * (module.head_dim + module.rotary_dim);
      value_ = output_ = heads * value_width(module);
      const int latents = (module.query_rank > 0 ? 2 : 1);
      latent_ = own_ * (2 * (module.query_rank + module.key_value_rank) + module.rotary_dim);
      latent_statistics_ = latents * 4 * own_;
    } else {
      query_ = output_ = heads * module.head_dim;
      key_ = value_ = keys * module.head_dim;
    }
    heads_ = heads;
    squares_ = squares(module, kind, size) * (module.heads / tp);
    if (kind.feed_forward == FeedForwardKind::dense) {
      inner_ = tokens * (module.ffn / tp);
    } else {
      const std::int64_t slots =
          module.experts_per_token * (context.expert_tp < context.tp ? own_ : tokens);
      routed_ = slots * module.hidden;
      inner_ = slots * (module.expert_ffn / context.expert_tp) + tokens * (module.shared_ffn / tp);
    }
    up_ = module.gated ? 2 : 1;
    element_ = size_of(precision_).value;
  }

  std::int64_t input() const { return element_ * stream_; }

  // Returns the bytes of a block without recomputation.
  std::int64_t tape() const {
    return 2 * (norm_input() + statistics()) + norm_outputs() + projections() + attention_output() +
           scores() + feed_forward() + masks() + output_factors();
  }
  std::int64_t tape_without_scores() const { return tape() - scores(); }

  // Selective recomputation by operator: the input of the checkpoint, and what its policy keeps.
  // The GEMMs in order: q, k, v, out, gate, up, down. No later op reads the output of the last one,
  // which a compiler detects.
  std::int64_t tape_by_operator() const {
    const std::int64_t unread = memory_.compiled ? 0 : whole_ + (cut_ ? stream_ : 0);
    const std::int64_t kept = query_ + value_ + inner_ + output_ + (cut_ ? stream_ : 0) + unread;
    return element_ * (stream_ + kept) + 4 * heads_;
  }

  // Returns the peak of a backward over the saved activations that are left, after each of its
  // steps has freed what it read.
  std::int64_t backward(bool rebuilds_scores) const {
    const std::int64_t gathered = shared_rows_ ? whole_ : 0, partial = cut_ ? whole_ : stream_;
    const std::int64_t second = stream_ + gathered + inner_;
    const std::int64_t activation = stream_ + up_ * inner_;  // its output is gone
    const std::int64_t first = 2 * stream_ + gathered + partial - inner_;
    const std::int64_t attention =
        output_ + 2 * (query_ + key_ + value_) + gathered - (1 + up_) * inner_;
    const std::int64_t scores_made =
        (eager() ? 2 * element_ * squares_ : 0) + (rebuilds_scores ? scores() : 0);
    return std::max({std::int64_t{0}, element_ * second, element_ * activation, element_ * first,
                     element_ * attention + scores_made});
  }
  // Output of the last GEMM, before and after it is scattered, and its sum with the residual
  // stream.
  std::int64_t forward() const { return element_ * ((shared_rows_ ? whole_ : 0) + 2 * stream_); }
  // By operator: the peak in the feed-forward part, before the output of the last GEMM exists.
  std::int64_t forward_by_operator() const {
    const std::int64_t made = memory_.compiled ? up_ : 2 * up_ - 1;  // but the first, which is kept
    const std::int64_t later = memory_.compiled ? 0 : whole_ + (cut_ ? stream_ : 0);  // unread
    return std::max(forward(), element_ * (stream_ + whole_ + made * inner_ - later));
  }
  // Nothing is saved: the peak is in the feed-forward part.
  std::int64_t forward_alone() const { return element_ * (3 * stream_ + (1 + up_) * inner_); }

 private:
  bool eager() const { return memory_.keeping == Keeping::megatron; }
  bool fsdp() const { return memory_.keeping == Keeping::fsdp; }
  bool takes_gradients() const { return module_.trainable != Trainable::frozen; }
  std::int64_t operand(std::int64_t elements) const {
    return takes_gradients() ? operand_bytes(stack_, precision_, elements) : 0;
  }
  std::int64_t statistics() const { return (module_.norm == Norm::layer ? 8 : 4) * own_; }

  // A plain RMS norm saves its input in fp32 and, for its scale, the normalized values.
  std::int64_t norm_input() const {
    const bool plain = fsdp() && !memory_.compiled && module_.norm == Norm::rms;
    return (plain && takes_gradients() ? 4 + element_ : element_) * stream_;
  }
  // Inputs of the matrices behind the norms. DTensor saves what it gathered.
  std::int64_t norm_outputs() const {
    if (fsdp()) return memory_.compiled ? 0 : 2 * operand(whole_);
    const bool routes = kind_.feed_forward == FeedForwardKind::experts;
    const std::int64_t router = routes ? 4 * own_ * module_.experts + operand(routed_) : 0;
    return 2 * operand(stream_) + router;
  }
  std::int64_t projections() const {
    const std::int64_t before_norms =
        module_.qk_norm ? element_ * (query_ + key_) + 2 * 4 * heads_ : 0;
    return element_ * (query_ + key_ + value_ + latent_) + latent_statistics_ + before_norms;
  }
  std::int64_t attention_output() const {
    const bool te = memory_.keeping == Keeping::transformer_engine;
    const std::int64_t cast = te && stack_.matrix ? operand(output_) : 0;
    // A gate reads the output and its own logits; the output matrix reads their product.
    const std::int64_t gate = module_.attention_gate ? 2 * element_ * output_ : 0;
    return element_ * output_ + cast + gate +
           (te && memory_.head_exchange && spread_ ? element_ * output_ : 0);
  }
  std::int64_t scores() const {
    if (!eager()) return 4 * heads_;
    return (2 * element_ + (memory_.dropout ? 1 : 0)) * squares_ -
           (memory_.dropout ? 0 : element_ * squares_);
  }
  std::int64_t feed_forward() const {
    if (!fsdp()) return element_ * up_ * inner_ + operand(inner_);
    const std::int64_t pointwise = memory_.compiled ? 0 : up_;  // silu's output, the product
    return element_ * (up_ + pointwise) * inner_;
  }
  // What the factors of a part's output keep: a layer scale its part's output, the gate of the
  // shared expert that expert's output and the gate itself.
  std::int64_t output_factors() const {
    const bool trains = module_.trainable == Trainable::full;  // LoRA leaves scales as they are
    const std::int64_t scales = module_.layer_scale != 0 && trains ? 2 * stream_ : 0;
    const bool gates = module_.shared_gate && kind_.feed_forward == FeedForwardKind::experts;
    return element_ * (scales + (gates ? stream_ + own_ : 0));
  }
  std::int64_t masks() const { return memory_.dropout ? 2 * stream_ : 0; }

  const SoftwareStack& stack_;
  const StackMemory& memory_;
  const Module& module_;
  BlockKind kind_;
  NumberFormat precision_;
  bool cut_ = false, shared_rows_ = false, spread_ = false;
  std::int64_t own_ = 0, stream_ = 0, whole_ = 0, query_ = 0, key_ = 0, value_ = 0, output_ = 0,
               latent_ = 0, latent_statistics_ = 0, heads_ = 0, squares_ = 0, inner_ = 0,
               routed_ = 0, up_ = 1, element_ = 0;
};

}  // namespace

LayerHeld block_held(const SoftwareStack& stack, const Module& module, const WorkSize& size,
                     const RankContext& context, Recompute recompute, int block_index) {
  const Block block(stack, module, block_at(module, block_index), size, context);
  const std::int64_t tape = block.tape();
  switch (recompute) {
    case Recompute::none:
      return {tape, tape + block.forward(), tape + block.backward(false)};
    case Recompute::selective: {
      const bool products = stack.memory.by_operator;
      const std::int64_t kept = products ? block.tape_by_operator() : block.tape_without_scores();
      // By operator, the backward of a block begins with recomputing the rest of its forward.
      const std::int64_t most =
          products ? std::max(tape, kept) + block.backward(false) : kept + block.backward(true);
      return {kept, kept + (products ? block.forward_by_operator() : block.forward()), most};
    }
    case Recompute::full:
      return {block.input(), block.input() + block.forward_alone(), tape + block.backward(false)};
  }
  return {};
}

}  // namespace polyphony
