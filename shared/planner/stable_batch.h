// Finds how large a batch must be so that the best division of GPUs over model components, rounded
// to whole GPUs, is the same for every batch. With smaller batches no single layout suits all
// steps.
//   A new batch of the returned size needs another division with probability at most p_error, with
//   confidence 1 − alpha.
// Source: Entrain, arXiv 2605.27918, algorithm 1, appendix B; own code. Choices where the paper is
// silent or contradicts itself:
//   * A component's share is its work summed over the batch, divided by all work of the batch. It
//     is not the mean of the samples' shares, because the sum is what balances a batch.
//   * Shares become GPUs by the largest-remainder method, with at least one GPU per component.
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace polyphony {

// Returns the number of batches that must agree: ⌈ln alpha / ln(1 − p_error)⌉; 59 at 5 % and 5 %.
int agreeing_batches(double alpha, double p_error);

// Divides `gpus` over components in proportion to their work. `gpus` must be at least the number of
// components.
std::vector<int> split_by_largest_remainder(const std::vector<double>& work, int gpus);

struct StableBatch {
  int samples = 0;
  std::vector<int> gpus;  // by component
  bool operator==(const StableBatch&) const = default;
};
// Returns the batch size, or nothing if batches of `most` samples do not agree. `draw(n)` returns
// the work of each component over a new batch of n samples. The size starts at 1 and is doubled
// until all batches agree.
std::optional<StableBatch> minimum_stable_batch(
    const std::function<std::vector<double>(int samples)>& draw, int gpus, int most,
    double alpha = 0.05, double p_error = 0.05);

}  // namespace polyphony
