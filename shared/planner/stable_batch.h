// How many samples a batch needs so that the split of GPUs over components, rounded to whole GPUs, is
// the same for every batch: below that, one layout is not right for all steps. A fresh batch of the size
// found is split otherwise with probability p_error at most, with confidence 1 − alpha.
// Source: Entrain, arXiv 2605.27918, algorithm 1, appendix B; own code. Decided where the paper is silent
// or says two things:
//   * a component's share is its work summed over the batch, of all work so summed, not the mean of
//     samples' shares: that is what balances a batch
//   * shares become GPUs by largest remainder, one at least for each component
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace polyphony {

// ⌈ln alpha / ln(1 − p_error)⌉ batches that agree; 59 at 5 % and 5 %.
int agreeing_batches(double alpha, double p_error);

// `gpus` over components by their work. At least as many as components.
std::vector<int> split_by_largest_remainder(const std::vector<double>& work, int gpus);

struct StableBatch {
  int samples = 0;
  std::vector<int> gpus;  // by component
  bool operator==(const StableBatch&) const = default;
};
// `draw(n)`: the work of each component over a fresh batch of n samples. From one sample on, doubled
// until all agree; nothing where they do not at `most`.
std::optional<StableBatch> minimum_stable_batch(
    const std::function<std::vector<double>(int samples)>& draw, int gpus, int most,
    double alpha = 0.05, double p_error = 0.05);

}  // namespace polyphony
