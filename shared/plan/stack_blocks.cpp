// A transformer block's tensors under other frameworks (shared/plan/stack_sizes.h).
#include <algorithm>

#include "shared/layers/row_shares.h"
#include "shared/plan/stack_sizes.h"

namespace polyphony {
namespace {

// Bytes of an operand of weight products, of a tensor of `elements`.
std::int64_t operand_bytes(const SoftwareStack& stack, NumberFormat precision,
                           std::int64_t elements) {
  const bool cast = stack.memory.keeping == Keeping::transformer_engine;
  if (cast && stack.matrix == NumberFormat::fp8) return elements;
  if (cast && stack.matrix == NumberFormat::nvfp4) return elements * 9 / 16;  // a scale for 16
  return elements * size_of(precision).value;
}

class Block {
 public:
  Block(const SoftwareStack& stack, const Module& module, const WorkSize& size,
        const RankContext& context)
      : stack_(stack), memory_(stack.memory), module_(module), precision_(context.precision) {
    const std::int64_t tokens = size.tokens, tp = context.tp;
    own_ = context.sp ? RowShares{tokens, context.tp}.count(context.tensor_index) : tokens;
    cut_ = context.tp > 1;
    shared_rows_ = cut_ && context.sp;
    spread_ = context.cp > 1;
    stream_ = own_ * module.hidden;
    whole_ = tokens * module.hidden;
    query_ = tokens * (module.heads / tp) * module.head_dim;
    key_ = tokens * std::max<std::int64_t>(1, module.kv_heads / tp) * module.head_dim;
    heads_ = tokens * (module.heads / tp);
    // Causal pairs n(n + 1)/2 are kept as squares.
    const bool causal = module.kind == ModuleKind::language;
    squares_ = (causal ? 2 * size.pairs - tokens : size.pairs) * (module.heads / tp);
    if (module.experts == 0) {
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

  // Of a block of which nothing is recomputed.
  std::int64_t tape() const {
    return 2 * (element_ * stream_ + statistics()) + norm_outputs() + projections() +
           attention_output() + scores() + feed_forward() + masks();
  }
  std::int64_t tape_without_scores() const { return tape() - scores(); }

  // Selective recomputation by operator: the checkpoint's input, and what its policy keeps. The
  // products in order: q, k, v, out, gate, up, down; the last is read by nobody, which a compiler
  // sees.
  std::int64_t tape_by_operator() const {
    const std::int64_t unread = memory_.compiled ? 0 : whole_ + (cut_ ? stream_ : 0);
    const std::int64_t kept = query_ + key_ + inner_ + query_ + (cut_ ? stream_ : 0) + unread;
    return element_ * (stream_ + kept) + 4 * heads_;
  }

  // The most that a backward makes over the tape that is left, after each of its steps has freed
  // what it read.
  std::int64_t backward(bool rebuilds_scores) const {
    const std::int64_t gathered = shared_rows_ ? whole_ : 0, partial = cut_ ? whole_ : stream_;
    const std::int64_t second = stream_ + gathered + inner_;
    const std::int64_t activation = stream_ + up_ * inner_;  // its output is gone
    const std::int64_t first = 2 * stream_ + gathered + partial - inner_;
    const std::int64_t attention = query_ + 2 * (query_ + 2 * key_) + gathered - (1 + up_) * inner_;
    const std::int64_t scores_made =
        (eager() ? 2 * element_ * squares_ : 0) + (rebuilds_scores ? scores() : 0);
    return std::max({std::int64_t{0}, element_ * second, element_ * activation, element_ * first,
                     element_ * attention + scores_made});
  }
  // Output of the last product, before and after it is scattered, and the sum with the stream.
  std::int64_t forward() const { return element_ * ((shared_rows_ ? whole_ : 0) + 2 * stream_); }
  // Nothing is kept: the widest moment, in the feed-forward part.
  std::int64_t forward_alone() const { return element_ * (3 * stream_ + (1 + up_) * inner_); }

 private:
  bool eager() const { return memory_.keeping == Keeping::megatron; }
  bool fsdp() const { return memory_.keeping == Keeping::fsdp; }
  bool takes_gradients() const { return module_.trainable != Trainable::frozen; }
  std::int64_t operand(std::int64_t elements) const {
    return takes_gradients() ? operand_bytes(stack_, precision_, elements) : 0;
  }
  std::int64_t statistics() const { return (module_.norm == Norm::layer ? 8 : 4) * own_; }

  // Inputs of the matrices behind them. DTensor keeps what it gathered.
  std::int64_t norm_outputs() const {
    if (fsdp()) return memory_.compiled ? 0 : 2 * operand(whole_);
    const std::int64_t router =
        module_.experts > 0 ? 4 * own_ * module_.experts + operand(routed_) : 0;
    return 2 * operand(stream_) + router;
  }
  std::int64_t projections() const {
    const std::int64_t before_norms =
        module_.qk_norm ? element_ * (query_ + key_) + 2 * 4 * heads_ : 0;
    return element_ * (query_ + 2 * key_) + before_norms;
  }
  std::int64_t attention_output() const {
    const bool te = memory_.keeping == Keeping::transformer_engine;
    const std::int64_t cast = te && stack_.matrix ? operand(query_) : 0;
    return element_ * query_ + cast + (te && memory_.exchanged && spread_ ? element_ * query_ : 0);
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
  std::int64_t masks() const { return memory_.dropout ? 2 * stream_ : 0; }

  const SoftwareStack& stack_;
  const StackMemory& memory_;
  const Module& module_;
  NumberFormat precision_;
  bool cut_ = false, shared_rows_ = false, spread_ = false;
  std::int64_t own_ = 0, stream_ = 0, whole_ = 0, query_ = 0, key_ = 0, heads_ = 0, squares_ = 0,
               inner_ = 0, routed_ = 0, up_ = 1, element_ = 0;
};

}  // namespace

LayerHeld block_held(const SoftwareStack& stack, const Module& module, const WorkSize& size,
                     const RankContext& context, Recompute recompute) {
  const Block block(stack, module, size, context);
  const std::int64_t tape = block.tape();
  switch (recompute) {
    case Recompute::none:
      return {tape, tape + block.forward(), tape + block.backward(false)};
    case Recompute::selective: {
      const bool products = stack.memory.by_operator;
      const std::int64_t kept = products ? block.tape_by_operator() : block.tape_without_scores();
      // By operator, a block's backward begins with the rest of its forward.
      const std::int64_t most =
          products ? std::max(tape, kept) + block.backward(false) : kept + block.backward(true);
      return {kept, kept + block.forward(), most};
    }
    case Recompute::full:
      return {block.input(), block.input() + block.forward_alone(), tape + block.backward(false)};
  }
  return {};
}

}  // namespace polyphony
