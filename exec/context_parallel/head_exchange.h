// Context parallelism by heads (Ulysses): each rank computes attention for a part of the heads over
// whole sequences.
//   all   before attention: own rows with all heads [T, C] -> the rows of all ranks, in order of
//         sample and position, with this rank's heads [G, C/n]
//   own   after attention: the transpose
// The C columns are ordered by key/value head; the number of these heads must be divisible by the n
// ranks.
// Source: Jacobs et al., arXiv 2309.14509 (Ulysses).
#pragma once

#include "exec/attention/attention.h"
#include "exec/autograd/sequence_rows.h"
#include "exec/work_input.h"

namespace polyphony::exec {

class HeadExchange : public RowExchange {
 public:
  // `counts`: rows of each rank. `order` [G]: the gathered row of each row in order of sample and
  // position; `inverse` is its inverse. Both undefined: the two orders are the same.
  HeadExchange(InnerGroup& group, std::vector<std::int64_t> counts, torch::Tensor order,
               torch::Tensor inverse);
  torch::Tensor all(const torch::Tensor& own) const override;
  torch::Tensor own(const torch::Tensor& all) const override;
  const torch::Tensor& order() const { return order_; }
  const torch::Tensor& inverse() const { return inverse_; }

 private:
  std::vector<std::int64_t> mine() const;  // this rank's rows, once for each rank
  InnerGroup& group_;
  std::vector<std::int64_t> counts_;
  std::int64_t rows_;  // G
  torch::Tensor order_, inverse_;
};

// Plans attention over the whole samples of the group. `angles` [T, D/2] are those of this rank's
// rows. `window`: rows that a row attends to (0: all).
SequencePlan plan_exchange(const WorkInput& data, InnerGroup& context, const torch::Tensor& angles,
                           torch::Dtype dtype, std::int64_t window, std::int64_t row_split);
// Rotates qkv [T, K·(g+2)·D] and exchanges it: returns all rows of the group for this rank's heads,
// [G, K/n·(g+2)·D], as attention() reads them. own_rows() brings the output of attention() back.
torch::Tensor exchange_heads(const torch::Tensor& qkv, const SequencePlan& plan,
                             const HeadShape& heads);

}  // namespace polyphony::exec
