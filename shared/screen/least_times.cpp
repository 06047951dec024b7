#include "shared/screen/least_times.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace polyphony {
namespace {

// Flows are rounded to whole bytes, by at most half a byte per channel, so that a transfer of a
// bound must be smaller by that much.
Bytes rounded(const Ring& ring, Bytes bytes) {
  const auto most = 1 + static_cast<std::int64_t>(ring.channels);
  return Bytes(std::max<std::int64_t>(0, bytes.value - most));
}

}  // namespace

Seconds LeastTimes::least_time(int first, int count, int stride, CollectiveKind kind, Bytes bytes) {
  if (count < 2) return Seconds(0);
  const Ring& over = ring(first, count, stride);
  return ring_time(over, kind, rounded(over, bytes));
}

Seconds LeastTimes::scalars(int ranks) {
  const Ring world = ring(0, ranks, 1);
  key_ = {ranks};
  return scalars_.get(key_, [&] {
    return ring_time(world, CollectiveKind::all_reduce, rounded(world, Bytes(3 * 8)));
  });
}

Seconds LeastTimes::crossing() const {
  if (cluster_.free_links) return Seconds(0);
  Seconds latency = std::min(cluster_.node_link.latency, cluster_.fabric_link.latency);
  if (cluster_.domain_size() < cluster_.ranks_per_node)
    latency = std::min(latency, cluster_.bus.latency);
  return profile_.message_latency + latency;
}

const Ring& LeastTimes::ring(int first, int count, int stride) {
  const int place = cluster_.flat() ? first % cluster_.ranks_per_node : first;
  key_ = {place, count, stride};
  return rings_.get(key_, [&] {
    std::vector<Rank> members;
    for (int i = 0; i < count; ++i)
      members.emplace_back(static_cast<std::size_t>(first + i * stride));
    return make_ring(members, cluster_, profile_);
  });
}

Ring LeastTimes::least(const ModuleLayout& grid, int count, int stride,
                       const ExpertChoice& choices) const {
  if (count < 2) return {};
  const int span = count * stride, node = cluster_.ranks_per_node;
  // If all groups lie in nodes in the same way, the first represents all.
  const bool alike = cluster_.flat() && grid.first_rank % std::gcd(span, node) == 0 &&
                     (span % node == 0 || node % span == 0) && grid.first_rank % node == 0;
  Ring best;
  for (int begin = grid.first_rank; begin + span <= grid.first_rank + grid.ranks; begin += span) {
    std::vector<Rank> members;
    for (int i = 0; i < count; ++i)
      members.emplace_back(static_cast<std::size_t>(begin + i * stride));
    const Ring one = make_ring(members, cluster_, profile_, Others::alike, choices);
    if (begin == grid.first_rank || one.nodes < best.nodes ||
        (one.nodes == best.nodes && one.rate.value > best.rate.value))
      best = one;
    if (alike) break;
  }
  return best;
}

Seconds LeastTimes::least_message(const ModuleLayout& grid, Bytes whole) const {
  if (cluster_.free_links) return Seconds(0);
  const Bytes bytes(std::max<std::int64_t>(0, whole.value - 1));  // rounded
  const Seconds between = cluster_.fabric_link.latency +
                          bytes / (cluster_.alone_between() * profile_.fabric_efficiency);
  const Seconds inside =
      cluster_.node_link.latency + bytes / (cluster_.node_link.rate * profile_.message_efficiency);
  Seconds least = std::min(between, inside);
  if (cluster_.domain_size() < cluster_.ranks_per_node)
    least = std::min(
        least, cluster_.bus.latency + bytes / (cluster_.bus.rate * profile_.message_efficiency));
  const int apart = grid.tp * grid.cp * grid.dp();  // ranks between a stage and the next
  const bool elsewhere = apart >= std::max(cluster_.domain_size(), cluster_.ranks_per_node);
  return profile_.message_latency + (elsewhere ? between : least);
}

}  // namespace polyphony
