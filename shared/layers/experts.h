// A block's mixture-of-experts feed-forward part (exec/experts/experts.h). The load of the experts
// is assumed to be even; nothing else depends on the routing. T rows that this rank routes, S = T·k
// slots (pairs of token and expert choice), E experts of which E/ep are on this rank, X their width
// on this rank.
//   collectives         forward: an all-gather of the counts per expert over the expert group
//                       (int64), S rows to the experts, S rows back. Backward: the gradients in
//                       both directions. Returning rows count like sent ones, as this rank's own
//                       tokens. Experts split over the tensor group add what a dense row-parallel
//                       and, in the backward pass, a column-parallel layer moves, and the sum of
//                       the routing weights' gradient, one number per slot. The balance loss sums
//                       its counts (int64, samples × experts) over the ranks of a sequence, in the
//                       backward pass
//   parameters          router [E, H], replicated; gate_up [E, 2X, H] and down [E, H, X] of the
//                       experts; shared.gate_up and shared.down of the shared expert, and with
//                       shared_gate shared.gate [1, H], replicated. With expert_bias: router.bias
//                       [E], replicated; gate_up.bias [E, 2X], split like its rows; down.bias
//                       [E, H], replicated over the ranks that split an expert: only the first of
//                       them adds it, while each computes its whole gradient
//   saved activations   its input; e·S·(2H + 3·X/t') + w·S + 32·S (with ep > 1: 48·S), t' ranks per
//                       expert: rows at the experts and their outputs, inputs of the activation,
//                       routing weights, indices; with a balance loss w·q·E of logits; of a shared
//                       expert e·T·3·F_shared/t, and e·q·(H + 1) if it is gated. Frozen: H and 2·X
//                       in place of 2H and 3·X. Full recomputation keeps the routing, 8·S
// Not counted: groups of experts and sigmoid scores, which add at most a few passes over [T, E] to
// the sort of the same array. Source of the counts: own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

class Experts : public LayerKernels {
 public:
  explicit Experts(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters& add);
  void forward();
  void backward_input();
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  // Bytes that full recomputation keeps in addition to the block's input: the routing.
  static std::int64_t choices(const LayerBytes& bytes);

 private:
  bool cut_experts() const { return context_.expert_tp > 1; }
  std::int64_t routed() const { return cut_experts() ? size_.tokens : own(size_.tokens); }
  std::int64_t slots() const { return routed() * module_.experts_per_token; }
  std::int64_t expert_width() const { return module_.expert_ffn / context_.expert_tp; }
  std::int64_t shared_width() const { return module_.shared_ffn / context_.tp; }
  Linear shared_in() const {
    return {size_.tokens, hidden(), 2 * shared_width(), false, low_rank()};
  }
  Linear shared_out() const { return {size_.tokens, shared_width(), hidden(), false, low_rank()}; }
  Linear shared_gate() const { return {own(size_.tokens), hidden(), 1}; }
  void shared_gate_backward();
  void router_gemm(std::int64_t rows);
  void route();
  void own_route();
  void plain_route();
  void weigh();
  void combine();
  void exchange();
  void expert_gemms(std::int64_t out, std::int64_t in, bool weight);
  void router_backward();
  std::int64_t local_experts() const { return module_.experts / context_.ep; }
};

// Returns the number of (token, expert choice) pairs that a rank routes: those of all rows, or, if
// experts are not split under sequence parallelism, of its own rows.
std::int64_t expert_slots(const Module& module, std::int64_t tokens, const RankContext& context);

}  // namespace polyphony
