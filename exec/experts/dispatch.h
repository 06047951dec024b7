// Sends token rows to the ranks that hold their experts, and back (the all-to-all of expert
// parallelism).
//   A slot is a (token, choice) pair, numbered t·k + c; there are S = T·k. Every rank of the expert
//   group holds E/ep consecutive experts and makes the same calls, with or without tokens.
//   here   [S, …]: slots ordered by expert, then by token
//   there  [R, …]: received rows ordered by local expert, then by sending rank, then by token
// Each direction is the transpose of the other, so gradients take the same two exchanges.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/autograd/inner_groups.h"
#include "exec/experts/expert_rows.h"

namespace polyphony::exec {

class Dispatch {
 public:
  // Gathers the counts of all ranks of the group, which must outlive this object. chosen [T, k].
  // `recorded`: the number of slots that an exchange is recorded with, S or an upper bound that all
  // ranks agree on.
  Dispatch(InnerGroup& group, const torch::Tensor& chosen, std::int64_t experts,
           std::int64_t recorded);

  // Exchange rows between the ranks: `here` order -> `there` order, and back.
  torch::Tensor there(const torch::Tensor& here) const;
  torch::Tensor back(const torch::Tensor& there) const;

  // x [T, …] -> [S, …] in `here` order: repeats each token's row once per choice.
  torch::Tensor spread(const torch::Tensor& x) const;
  // here [S, H] -> [T, H]: sums the rows returned for each token, in the order of its choices, each
  // multiplied by its weight (weights [T, k]; undefined: 1). Summed in at least fp32.
  torch::Tensor combine(const torch::Tensor& here, const torch::Tensor& weights) const;
  // The backward of combine(): given dy [T, H], returns the gradients of here [S, H] and of the
  // weights [T, k].
  struct Gradients {
    torch::Tensor here, weights;
  };
  Gradients combine_backward(const torch::Tensor& dy, const torch::Tensor& here,
                             const torch::Tensor& weights) const;
  // Rows per local expert, in `there` order.
  const std::shared_ptr<const ExpertRows>& expert_rows() const { return expert_rows_; }

 private:
  // Reorder [S, …] from `here` order to slot order, and back.
  torch::Tensor by_slot(const torch::Tensor& here) const { return here.index_select(0, inverse_); }
  torch::Tensor by_expert(const torch::Tensor& slots) const {
    return slots.index_select(0, order_);
  }
  void count(const torch::Tensor& slots, std::int64_t experts);
  void arrange(const torch::Tensor& counts_of_all, std::int64_t experts, torch::Device device);
  InnerGroup& group_;
  std::int64_t recorded_, per_token_;
  torch::Tensor order_, inverse_, tokens_;  // [S]: slot by place, place by slot, token by place
  torch::Tensor arranged_, arrived_;  // [R]: arrival order -> `there`, and back; one rank: none
  std::vector<std::int64_t> send_, receive_;  // rows to and from each rank, if there are several
  std::shared_ptr<const ExpertRows> expert_rows_;
};

}  // namespace polyphony::exec
