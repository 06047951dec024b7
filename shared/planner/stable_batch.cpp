#include "shared/planner/stable_batch.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "shared/error.h"

namespace polyphony {

int agreeing_batches(double alpha, double p_error) {
  return static_cast<int>(std::ceil(std::log(alpha) / std::log1p(-p_error)));
}

std::vector<int> split_by_largest_remainder(const std::vector<double>& work, int gpus) {
  POLYPHONY_CHECK(gpus >= static_cast<int>(work.size()),
                  gpus << " GPUs for " << work.size() << " components");
  const double sum = std::accumulate(work.begin(), work.end(), 0.0);
  std::vector<int> split;
  std::vector<double> remainder;
  for (const double of : work) {
    const double share = sum > 0 ? of / sum * gpus : gpus / static_cast<double>(work.size());
    split.push_back(std::max(1, static_cast<int>(share)));
    remainder.push_back(share - split.back());
  }
  for (int given = std::accumulate(split.begin(), split.end(), 0); given != gpus;) {
    const int step = given < gpus ? 1 : -1;  // too many GPUs if a component was raised to one
    std::size_t to = split.size();
    for (std::size_t c = 0; c < split.size(); ++c)
      if ((step > 0 || split[c] > 1) &&
          (to == split.size() || step * remainder[c] > step * remainder[to]))
        to = c;
    split[to] += step;
    remainder[to] -= step;
    given += step;
  }
  return split;
}

std::optional<StableBatch> minimum_stable_batch(
    const std::function<std::vector<double>(int samples)>& draw, int gpus, int most, double alpha,
    double p_error) {
  const int trials = agreeing_batches(alpha, p_error);
  for (int samples = 1; samples <= most; samples *= 2) {
    const std::vector<int> split = split_by_largest_remainder(draw(samples), gpus);
    int agree = 0;
    while (agree < trials && split_by_largest_remainder(draw(samples), gpus) == split) ++agree;
    if (agree == trials) return StableBatch{samples, split};
  }
  return {};
}

}  // namespace polyphony
