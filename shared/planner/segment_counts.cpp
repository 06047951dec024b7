#include "shared/planner/segment_counts.h"

#include <algorithm>

#include "shared/error.h"

namespace polyphony {

int efficient_size(const std::vector<SizeLatency>& seen, double share) {
  POLYPHONY_CHECK(!seen.empty(), "no sizes");
  const auto rate = [](const SizeLatency& one) { return one.items / one.latency.count(); };
  double best = 0;
  for (const SizeLatency& one : seen) best = std::max(best, rate(one));
  int least = 0;
  for (const SizeLatency& one : seen)
    if (rate(one) >= share * best && (least == 0 || one.items < least)) least = one.items;
  return least;
}

std::vector<int> segment_counts(const std::vector<Seconds>& latencies) {
  Seconds least{};
  for (const Seconds one : latencies)
    if (one > Seconds(0) && (least == Seconds(0) || one < least)) least = one;
  std::vector<int> counts;
  for (const Seconds one : latencies)
    counts.push_back(one > Seconds(0) ? static_cast<int>(one / least * (1 + 1e-12)) : 1);
  return counts;
}

std::vector<int> sub_microbatches(int items, int size) {
  const int parts = (items + size - 1) / size;
  std::vector<int> sizes;
  for (int p = 0; p < parts; ++p) sizes.push_back(items * (p + 1) / parts - items * p / parts);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

}  // namespace polyphony
