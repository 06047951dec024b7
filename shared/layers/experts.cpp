#include "shared/layers/experts.h"

#include "shared/layers/feed_forward.h"

namespace polyphony {

void Experts::parameters(LayerParameters& add) {
  const Module& m = add.module();
  const std::int64_t inner = 2 * std::int64_t{m.expert_ffn};
  add.matrix("router.weight", m.experts, m.hidden, Cut::replicated, Rows::own).role = Role::router;
  if (m.choice_bias)
    add.vector("router.choice_bias", m.experts, Cut::replicated, Initial::zeros).trained = false;
  if (m.expert_bias) add.vector("router.bias", m.experts, Cut::replicated, Initial::zeros);
  add.experts("experts.gate_up.weight", inner, m.hidden, Cut::rows);
  if (m.expert_bias) add.expert_bias("experts.gate_up.bias", inner, Cut::rows);
  add.experts("experts.down.weight", m.hidden, m.expert_ffn, Cut::columns);
  if (m.expert_bias)
    add.expert_bias("experts.down.bias", m.hidden, Cut::replicated).partial = Partial::never;
  if (m.shared_ffn == 0) return;
  add.adapted("shared.gate_up", 2 * std::int64_t{m.shared_ffn}, m.hidden, Cut::rows, false);
  add.adapted("shared.down", m.hidden, m.shared_ffn, Cut::columns, false);
  if (m.shared_gate)  // its input is that of the router, or of the shared expert
    add.matrix("shared.gate.weight", 1, m.hidden, Cut::replicated, Rows::own).input = Input::others;
}

// One GEMM per local expert, evenly loaded.
void Experts::expert_gemms(std::int64_t out, std::int64_t in, bool weight) {
  const std::int64_t local = local_experts(), rows = (slots() + local - 1) / local;
  const double flops =
      2.0 * static_cast<double>(slots()) * static_cast<double>(out) * static_cast<double>(in);
  const std::int64_t moved = slots() * (in + out) * element();
  const auto launches = static_cast<int>(local);
  if (!weight) {
    add(KernelKind::gemm, flops, moved + local * in * out * element(), launches, rows, out, in)
        .experts = true;
    return;
  }
  add(KernelKind::gemm, flops, moved + 2 * local * in * out * wide_element(), launches, out, in,
      rows)
      .experts = true;
  if (module_.expert_bias) passes(slots() * out, 1, 2 * launches);  // column sums, accumulated
}

void Experts::exchange() {
  if (context_.ep == 1) return;
  passes(slots() * hidden(), 2, 1);  // reordered between by sender and by expert
  collective(CollectiveKind::all_to_all, slots() * hidden() * element(), GroupKind::expert);
}

void Experts::router_gemm(std::int64_t rows) {
  const std::int64_t experts = module_.experts, wide = wide_element();
  if (element() < wide) add(KernelKind::elementwise, 0, rows * hidden() * (element() + wide), 2);
  gemm(rows, experts, hidden(), (rows * hidden() + experts * hidden() + rows * experts) * wide);
}

// From the router logits to the rows, sorted by expert.
void Experts::route() {
  router_gemm(routed());
  if (is_own()) {
    own_route();
  } else {
    plain_route();
  }
  if (context_.ep > 1)
    collective(CollectiveKind::all_gather, std::int64_t{context_.ep} * module_.experts * kIndex,
               GroupKind::expert);
  passes(slots() * hidden(), 2, 1);
}

// Launches of the own form. Scores sorted with their indices (1), the first k indices copied (1),
// scores selected (1) and converted to weights (1; see weigh() for sigmoids and scaling). Slots
// sorted by expert (1), the permutation inverted (2) and divided by k (1), slots counted (3).
// Without expert parallelism the counts go to the host, are summed up and narrowed (3); with it,
// the rows received from other ranks are listed and their permutation is inverted (4).
void Experts::own_route() {
  const std::int64_t wide = wide_element();
  add(KernelKind::elementwise, 0,
      routed() * module_.experts * (2 * wide + kIndex) + slots() * (2 * kIndex + 4 * wide), 4);
  weigh();
  add(KernelKind::elementwise, 0, slots() * 11 * kIndex, 7);
  if (context_.ep > 1)
    add(KernelKind::elementwise, 0, slots() * 4 * kIndex, 4);
  else
    more_launches(3);
}

// Extra kernels of the routing weights: normalization of sigmoid scores (2), scaling (1). The
// backward pass computes the weights again from the saved scores.
void Experts::weigh() {
  const bool normed = module_.router_scores == RouterScores::sigmoid;
  const int launches = (normed ? 2 : 0) + (module_.routed_scale == 1 ? 0 : 1);
  if (launches > 0)
    add(KernelKind::elementwise, 0, slots() * 2 * launches * wide_element(), launches);
}

void Experts::plain_route() {
  const std::int64_t wide = wide_element();
  // Scores sorted with their indices, largest first; the first k copied, selected and converted to
  // weights.
  add(KernelKind::elementwise, 0,
      routed() * module_.experts * (2 * wide + kIndex) + slots() * 6 * wide, 5);
  // Slots sorted by expert and counted; the permutation inverted and divided by k.
  add(KernelKind::elementwise, 0, slots() * 8 * kIndex, 6);
}

// Own form: one kernel that reads the rows of all slots and writes one row per token, or, backward,
// reads one row per token and writes a gradient per slot.
void Experts::combine() {
  passes((slots() + slots() / module_.experts_per_token) * hidden(), 1, 1);
}

void Experts::forward() {
  if (cut_experts() && sequence()) gather(size_.tokens, hidden());
  route();
  exchange();
  expert_gemms(2 * expert_width(), hidden(), false);
  const GatePasses gate = gate_passes(module_.activation, form_);  // as in a dense block
  passes(slots() * expert_width(), gate.forward, gate.forward_launches);
  expert_gemms(hidden(), expert_width(), false);
  exchange();
  // Slots reordered by token (2), weighted (2), summed over each token's experts (1).
  if (is_own())
    combine();
  else
    passes(slots() * hidden(), 5, 3);
  if (cut_experts()) sum(size_.tokens, hidden());
  if (module_.shared_ffn == 0) return;
  forward_column(shared_in());
  passes(size_.tokens * shared_width(), gate.forward, gate.forward_launches);
  forward_row(shared_out());
  if (module_.shared_gate) {
    forward_cut(shared_gate());
    passes(shared_gate().rows, 2, 1);  // sigmoid
    passes(between_blocks(), 2, 1);    // times the expert's output
  }
  passes(between_blocks(), 3, 1);
}

void Experts::backward_input() {
  const GatePasses gate = gate_passes(module_.activation, form_);
  if (module_.shared_ffn > 0) {
    if (module_.shared_gate) shared_gate_backward();
    input_gradient_row(shared_out());
    passes(size_.tokens * shared_width(), gate.backward, gate.backward_launches);
    input_gradient_column(shared_in());
    passes(between_blocks(), 3, 1);
  }
  if (cut_experts() && sequence()) gather(size_.tokens, hidden());
  // The output's gradient per slot (2), multiplied by the experts' outputs (3) and summed, for the
  // routing weights; multiplied by the weights, for the experts.
  if (is_own()) {
    weigh();
    combine(), passes(slots() * hidden(), 1, 0);
  } else {
    passes(slots() * hidden(), 8, 4);
  }
  if (cut_experts()) reduce(CollectiveKind::all_reduce, slots() * wide_element());
  exchange();
  expert_gemms(expert_width(), hidden(), false);
  passes(slots() * expert_width(), gate.backward, gate.backward_launches);
  expert_gemms(hidden(), 2 * expert_width(), false);
  exchange();
  if (is_own())
    combine();
  else
    passes(slots() * hidden(), 3, 2);  // reordered by token, summed over its experts
  if (cut_experts()) sum(size_.tokens, hidden());
  router_backward();
}

// The gradient times the expert's output (3), summed over the features (1), for the gate; times
// the gate (2), for the expert; and the gradient of the gate's input, added to the others (3).
void Experts::shared_gate_backward() {
  passes(between_blocks(), 4, 2);
  passes(shared_gate().rows, 3, 1);  // backward of the sigmoid
  input_gradient(shared_gate());
  passes(between_blocks(), 5, 2);
}

void Experts::router_backward() {
  const std::int64_t rows = own(size_.tokens), experts = module_.experts, wide = wide_element();
  // Backward of softmax or sigmoid of the chosen experts, then a scatter to all experts.
  add(KernelKind::elementwise, 0, (rows * module_.experts_per_token * 7 + rows * experts) * wide,
      6);
  const bool sigmoids = is_own() && module_.router_scores == RouterScores::sigmoid;
  // Own form: normalized scores again (2), their gradient (2); the scaling factor (1).
  const int more = (sigmoids ? 4 : 0) + (is_own() && module_.routed_scale != 1 ? 1 : 0);
  if (more > 0) add(KernelKind::elementwise, 0, slots() * 2 * more * wide, more);
  if (module_.balance_weight > 0) {
    // Counts per sample and expert; softmax, times factors per sample, minus the mean.
    const std::int64_t counts = size_.samples * experts;
    // Launches of the own form: indices of counts (2), counts (3); tokens per sample, at least one,
    // squared (3); counts divided and scaled (3), expanded to rows (1); then as above: softmax (1),
    // multiplied by it, summed, multiplied, subtracted (4), added to the gradient (1).
    add(KernelKind::elementwise, 0, (slots() * 3 + counts * 3) * kIndex, is_own() ? 5 : 4);
    add(KernelKind::elementwise, 0, rows * experts * 14 * wide, is_own() ? 13 : 7);
    if (sigmoids) add(KernelKind::elementwise, 0, rows * experts * 9 * wide, 4);  // as above
    if (sequence() && !cut_experts()) reduce(CollectiveKind::all_reduce, counts * kIndex);
    if (context()) collective(CollectiveKind::all_reduce, counts * kIndex, GroupKind::context);
  }
  gemm(rows, hidden(), experts, (rows * hidden() + experts * hidden() + rows * experts) * wide);
  passes(rows * hidden(), 3, 1);
}

void Experts::backward_weight() {
  if (!lora()) {
    expert_gemms(hidden(), expert_width(), true);
    expert_gemms(2 * expert_width(), hidden(), true);
    const std::int64_t rows = own(size_.tokens), experts = module_.experts;
    gemm(experts, hidden(), rows,
         (rows * hidden() + rows * experts + 2 * experts * hidden()) * wide_element());
    if (module_.shared_gate) weight_gradient(shared_gate());
  }
  if (module_.shared_ffn == 0) return;
  weight_gradient(shared_out());
  weight_gradient(shared_in());
}

std::int64_t expert_slots(const Module& module, std::int64_t tokens, const RankContext& context) {
  const bool own = context.sp && context.expert_tp < context.tp;
  return module.experts_per_token *
         (own ? RowShares{tokens, context.tp}.count(context.tensor_index) : tokens);
}

std::int64_t Experts::choices(const LayerBytes& bytes) {
  return kIndex * expert_slots(bytes.module, bytes.size.tokens, bytes.context);
}

std::int64_t Experts::tape(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const bool trained = bytes.trains(), shares = m.shared_ffn > 0;
  const std::int64_t rows = (trained ? 2 : 1) * std::int64_t{m.hidden};
  const std::int64_t inner = (trained ? 3 : 2) * std::int64_t{m.expert_ffn};
  const std::int64_t per_slot = bytes.element() * (rows + inner / bytes.context.expert_tp) +
                                bytes.wide() + (bytes.context.ep > 1 ? 6 : 4) * kIndex;
  const std::int64_t balance =
      m.balance_weight > 0 ? bytes.wide() * bytes.own(bytes.size.tokens) * m.experts : 0;
  // If neither a router nor a shared expert needs it for a gradient, the input is not saved.
  const std::int64_t input = trained || shares ? bytes.matrix_input() : 0;
  // Output of the shared expert, which is the rank's padded share of the rows, and its gate.
  const RowShares own{bytes.size.tokens, bytes.context.sp ? bytes.context.tp : 1};
  const std::int64_t gated =
      m.shared_gate ? bytes.element() * (own.share() * m.hidden + bytes.own(bytes.size.tokens)) : 0;
  return input + gated + (shares ? bytes.low_rank(2) : 0) +
         expert_slots(m, bytes.size.tokens, bytes.context) * per_slot + balance +
         activation_bytes(bytes, m.shared_ffn, true);
}

}  // namespace polyphony
