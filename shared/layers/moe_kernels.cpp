// Mixture of experts in place of a decoder block's feed-forward layer (exec/layers/experts.h), with the
// experts evenly loaded: what cannot be known without routing is what each expert gets, and only
// that. T rows that this rank routes, S = T·k slots (token, choice), E experts of which E/ep are
// here, X their width on this rank.
//   Collectives, forward: counts by expert gathered over the expert group (int64), S rows to the
//   experts, S rows back. Backward: gradients there and back. What comes back is counted as what
//   went out: this rank's own tokens. Experts cut over the tensor group add what a dense
//   row-parallel and, backward, a column-parallel layer moves, and the sum of the weights'
//   gradient, a number a slot. The balance term sums its counts (int64, samples × experts) over the
//   ranks of a sequence, in the backward.
// Source of the counts: own count of what exec/ does.
#include "shared/layers/layer_kernels.h"

namespace polyphony {

namespace {
constexpr std::int64_t kIndex = 8;  // bytes of an int64
}

// One product for each expert here, evenly loaded.
void LayerKernels::expert_gemms(std::int64_t out, std::int64_t in, bool weight) {
  const std::int64_t local = module_.experts / context_.ep, rows = (slots() + local - 1) / local;
  const double flops =
      2.0 * static_cast<double>(slots()) * static_cast<double>(out) * static_cast<double>(in);
  const std::int64_t moved = slots() * (in + out) * element();
  const auto launches = static_cast<int>(local);
  if (weight)
    add(KernelKind::gemm, flops, moved + 2 * local * in * out * wide_element(), launches, out, in,
        rows);
  else
    add(KernelKind::gemm, flops, moved + local * in * out * element(), launches, rows, out, in);
}

void LayerKernels::expert_exchange() {
  if (context_.ep == 1) return;
  passes(slots() * hidden(), 2, 1);  // between the order by sender and the order by expert
  collective(CollectiveKind::all_to_all, slots() * hidden() * element(), GroupKind::expert);
}

void LayerKernels::router_gemm(std::int64_t rows) {
  const std::int64_t experts = module_.experts, wide = wide_element();
  if (element() < wide) add(KernelKind::elementwise, 0, rows * hidden() * (element() + wide), 2);
  gemm(rows, experts, hidden(), (rows * hidden() + experts * hidden() + rows * experts) * wide);
}

// Router logits to the rows in the order of their experts.
void LayerKernels::route() {
  const std::int64_t wide = wide_element();
  router_gemm(routed());
  // Sorted with their places, largest first; the first k copied, picked and made to weights.
  add(KernelKind::elementwise, 0,
      routed() * module_.experts * (2 * wide + kIndex) + slots() * 6 * wide, 5);
  // Slots sorted by expert, counted, the order undone, and divided by k.
  add(KernelKind::elementwise, 0, slots() * 8 * kIndex, 6);
  if (context_.ep > 1)
    collective(CollectiveKind::all_gather, std::int64_t{context_.ep} * module_.experts * kIndex,
               GroupKind::expert);
  passes(slots() * hidden(), 2, 1);
}

void LayerKernels::experts_forward() {
  if (cut_experts() && sequence()) gather(size_.tokens, hidden());
  route();
  expert_exchange();
  expert_gemms(2 * expert_width(), hidden(), false);
  passes(slots() * expert_width(), 5, 2);  // SwiGLU, as in a dense block
  expert_gemms(hidden(), expert_width(), false);
  expert_exchange();
  // Slots in the order of tokens (2), weighted (2), summed over the choices.
  passes(slots() * hidden(), 5, 3);
  if (cut_experts()) sum(size_.tokens, hidden());
  if (module_.shared_ffn == 0) return;
  forward_column(shared_in());
  passes(size_.tokens * shared_width(), 5, 2);
  forward_row(shared_out());
  passes(own(size_.tokens) * hidden(), 3, 1);
}

void LayerKernels::experts_backward_input() {
  if (module_.shared_ffn > 0) {
    input_gradient_row(shared_out());
    passes(size_.tokens * shared_width(), 13, 4);
    input_gradient_column(shared_in());
    passes(own(size_.tokens) * hidden(), 3, 1);
  }
  if (cut_experts() && sequence()) gather(size_.tokens, hidden());
  // The output's gradient by slot (2), times what the experts said (3), summed; times the weight.
  passes(slots() * hidden(), 8, 4);
  if (cut_experts()) reduce(CollectiveKind::all_reduce, slots() * wide_element());
  expert_exchange();
  expert_gemms(expert_width(), hidden(), false);
  passes(slots() * expert_width(), 13, 4);
  expert_gemms(hidden(), 2 * expert_width(), false);
  expert_exchange();
  passes(slots() * hidden(), 3, 2);  // in the order of tokens, summed over the choices
  if (cut_experts()) sum(size_.tokens, hidden());
  router_backward();
}

void LayerKernels::router_backward() {
  const std::int64_t rows = own(size_.tokens), experts = module_.experts, wide = wide_element();
  // Through the softmax of the chosen, and scattered.
  add(KernelKind::elementwise, 0, (rows * module_.experts_per_token * 7 + rows * experts) * wide,
      6);
  if (module_.balance_weight > 0) {
    // Counts by sample and expert; softmax, times the samples' factors, less the mean.
    const std::int64_t counts = size_.samples * experts;
    add(KernelKind::elementwise, 0, (slots() * 3 + counts * 3) * kIndex, 4);
    add(KernelKind::elementwise, 0, rows * experts * 14 * wide, 7);
    if (sequence() && !cut_experts()) reduce(CollectiveKind::all_reduce, counts * kIndex);
    if (context()) collective(CollectiveKind::all_reduce, counts * kIndex, GroupKind::context);
  }
  gemm(rows, hidden(), experts, (rows * hidden() + experts * hidden() + rows * experts) * wide);
  passes(rows * hidden(), 3, 1);
}

void LayerKernels::experts_backward_weight() {
  if (!lora()) {
    expert_gemms(hidden(), expert_width(), true);
    expert_gemms(2 * expert_width(), hidden(), true);
    const std::int64_t rows = own(size_.tokens), experts = module_.experts;
    gemm(experts, hidden(), rows,
         (rows * hidden() + rows * experts + 2 * experts * hidden()) * wide_element());
  }
  if (module_.shared_ffn == 0) return;
  weight_gradient(shared_out());
  weight_gradient(shared_in());
}

}  // namespace polyphony
