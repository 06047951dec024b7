// Agreement between the ranks of a training loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/transport/communicator.h"
#include "shared/error.h"
#include "shared/units.h"

namespace polyphony::exec {

// Decisions that all ranks must take at the same step, and sums over the ranks. Decisions are
// exchanged about twice a second, at steps that all ranks derive from the same numbers, so that
// short steps are not slowed down.
class Control {
 public:
  struct Decision {
    bool interrupted = false;  // on any rank
    bool checkpoint = false;   // any rank says that one is due
    bool saving = false;       // any rank works on a checkpoint
  };
  explicit Control(Transport& transport) : world_(transport.world_size()) {
    std::vector<Rank> all;
    for (int r = 0; r < world_; ++r) all.emplace_back(static_cast<std::size_t>(r));
    group_ = transport.make_group("control", all);
  }

  bool due(std::int64_t step) const { return step >= next_; }
  // Makes decisions due again after a rewind to an earlier step.
  void rewind(std::int64_t step) { next_ = std::min(next_, step); }

  // Collective, at steps that are due(). Also checks that all ranks have the same `plan` digest.
  Decision exchange(std::int64_t step, bool interrupted, bool checkpoint, Seconds last_step,
                    std::uint64_t plan, bool saving) {
    const auto high = static_cast<double>(plan >> 32),
               low = static_cast<double>(plan & 0xffffffffu);
    torch::Tensor values =
        torch::tensor({interrupted ? 1.0 : 0.0, checkpoint ? 1.0 : 0.0, last_step.count(), high,
                       -high, low, -low, saving ? 1.0 : 0.0},
                      torch::kFloat64);
    group_->all_reduce(values, Reduction::max);
    const double* v = values.const_data_ptr<double>();
    POLYPHONY_CHECK(v[3] == -v[4] && v[5] == -v[6], "the ranks have different plans for step "
                                                        << step << "; do all read the same data?");
    next_ = step + std::max<std::int64_t>(1, static_cast<std::int64_t>(0.5 / std::max(1e-3, v[2])));
    return {v[0] > 0, v[1] > 0, v[7] > 0};
  }

  // Sums `values` over the ranks, in place. Collective.
  void sum(torch::Tensor& values) { group_->all_reduce(values, Reduction::sum); }
  // Returns the values of all ranks, rank after rank. `mine`: [n] int64, on the host; n may differ
  // between ranks. Collective.
  torch::Tensor gather(const torch::Tensor& mine) {
    torch::Tensor sizes = torch::zeros({world_}, torch::kInt64);
    sizes[group_->index()] = mine.size(0);
    sum(sizes);
    const std::vector<std::int64_t> counts(sizes.const_data_ptr<std::int64_t>(),
                                           sizes.const_data_ptr<std::int64_t>() + world_);
    torch::Tensor all = torch::empty({sizes.sum().item<std::int64_t>()}, torch::kInt64);
    group_->all_gather(mine, all, counts);
    return all;
  }

 private:
  int world_;
  std::unique_ptr<Communicator> group_;
  std::int64_t next_ = 0;
};

}  // namespace polyphony::exec
