// A block's feed-forward part of experts (exec/layers/experts.h), with the experts evenly loaded: what
// cannot be known without routing is what each expert gets, and only that. T rows that this rank
// routes, S = T·k slots (token, choice), E experts of which E/ep are here, X their width on this rank.
//   Collectives, forward: counts by expert gathered over the expert group (int64), S rows to the
//   experts, S rows back. Backward: gradients there and back. What comes back is counted as what
//   went out: this rank's own tokens. Experts cut over the tensor group add what a dense
//   row-parallel and, backward, a column-parallel layer moves, and the sum of the weights'
//   gradient, a number a slot. The balance term sums its counts (int64, samples × experts) over the
//   ranks of a sequence, in the backward. Groups of experts and sigmoids cost nothing here: a
//   few passes over [T, E] at most, beside the sort of the same.
//   parameters  router [E, H] whole on every rank; experts' gate_up [E, 2X, H] and down [E, H, X];
//               of the expert that all tokens visit shared.gate_up and shared.down; with expert_bias
//               router.bias [E] whole, gate_up.bias [E, 2X] cut as its rows are, down.bias [E, H] whole
//               on every rank that has a part of the expert: added on the first of them alone, while
//               each makes its whole gradient
//   tape        its input; S rows, t' ranks that cut an expert: e·S·(2H + 3·X/t') + w·S + 32·S (with
//               ep > 1 48·S): rows at the experts and what they answered, the activation's inputs,
//               weights, indices; with a balance term w·q·E logits; shared e·T·3·F_shared/t. Frozen:
//               H and 2·X. With full recomputation the choice of experts, 8·S
// Source of the counts: own count of what exec/ does.
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
  // What full recomputation keeps besides the block's input.
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

// (token, choice) pairs that a rank routes: of all rows, or with uncut experts of its own.
std::int64_t expert_slots(const Module& module, std::int64_t tokens, const RankContext& context);

}  // namespace polyphony
