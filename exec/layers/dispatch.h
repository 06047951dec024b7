// The way of token rows to the ranks that hold their experts, and back.
//   slot: a (token, choice) pair, t·k + c; S = T·k of them. Every rank of the expert group holds
//   E/ep consecutive experts, and makes the same calls, with or without tokens.
//   here   [S, …]: slots in the order of their experts, then tokens
//   there  [R, …]: what arrived, in the order of the local experts, then sending ranks, then tokens
// Each way is the other's transpose, so that gradients take the same two.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/autograd/inner_groups.h"
#include "exec/layers/expert_rows.h"

namespace polyphony::exec {

class Dispatch {
 public:
  // chosen [T, k]. Gathers the counts of all ranks of the group, which must outlive this.
  // `recorded`: slots that an exchange is recorded with, S or an upper bound that ranks agree on.
  Dispatch(InnerGroup& group, const torch::Tensor& chosen, std::int64_t experts,
           std::int64_t recorded);

  torch::Tensor there(const torch::Tensor& here) const;
  torch::Tensor back(const torch::Tensor& there) const;

  // x [T, …] -> [S, …]: each token's row once for every choice, as `here`.
  torch::Tensor spread(const torch::Tensor& x) const;
  // here [S, H] -> [T, H]: Σ over a token's choices, in their order, of weights [T, k] times what came back; weights
  // undefined: their sum. Summed in fp32 at least.
  torch::Tensor combine(const torch::Tensor& here, const torch::Tensor& weights) const;
  // Of dy [T, H]: gradients of here [S, H], and of the weights [T, k].
  struct Gradients {
    torch::Tensor here, weights;
  };
  Gradients combine_backward(const torch::Tensor& dy, const torch::Tensor& here,
                             const torch::Tensor& weights) const;
  // There, of the local experts.
  const std::shared_ptr<const ExpertRows>& expert_rows() const { return expert_rows_; }

 private:
  // [S, …] from `here` to slot order, and the other way.
  torch::Tensor by_slot(const torch::Tensor& here) const { return here.index_select(0, inverse_); }
  torch::Tensor by_expert(const torch::Tensor& slots) const {
    return slots.index_select(0, order_);
  }
  void count(const torch::Tensor& slots, std::int64_t experts);
  void arrange(const torch::Tensor& counts_of_all, std::int64_t experts, torch::Device device);
  InnerGroup& group_;
  std::int64_t recorded_, per_token_;
  torch::Tensor order_, inverse_, tokens_;  // [S]: slots by expert; places of slots; slots' tokens
  torch::Tensor arranged_, arrived_;  // [R] between order of arrival and `there`; one rank: none
  std::vector<std::int64_t> send_, receive_;  // several ranks: rows to each and from each
  std::shared_ptr<const ExpertRows> expert_rows_;
};

}  // namespace polyphony::exec
