// Context parallelism by heads: each rank attends for some of the heads to whole sequences.
//   all   own rows with all heads [T, C] -> those of all ranks, by sample and position, with this
//         rank's heads [G, C/n]: before attention
//   own   the transpose: after it
// The C columns lie by key/value head, whose number n ranks divide.
// Source: Jacobs et al., arXiv 2309.14509 (Ulysses).
#pragma once

#include "exec/attention/attention.h"
#include "exec/autograd/sequence_rows.h"
#include "exec/work_input.h"

namespace polyphony::exec {

class HeadExchange : public RowExchange {
 public:
  // `counts`: rows of each rank. `order` [G]: gathered row of each row by sample and position, `inverse`
  // undoes it; both undefined: the same.
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

// Of the whole samples of the group; `angles` [T, D/2] of this rank's rows. `window`: rows that a row sees, 0: all.
SequencePlan plan_exchange(const WorkInput& data, InnerGroup& context, const torch::Tensor& angles,
                           torch::Dtype dtype, std::int64_t window, std::int64_t row_split);
// qkv [T, K·(g+2)·D] -> rotated, of the group's rows and this rank's heads [G, K/n·(g+2)·D], as attention()
// reads it. What that gives comes back by own_rows().
torch::Tensor exchange_heads(const torch::Tensor& qkv, const SequencePlan& plan,
                             const HeadShape& heads);

}  // namespace polyphony::exec
