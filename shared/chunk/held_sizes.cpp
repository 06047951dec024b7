#include "shared/chunk/held_sizes.h"

#include <algorithm>

namespace polyphony {

HeldElements held_elements(const std::vector<Parameter>& parameters, const ShardIndex& place) {
  HeldElements elements;
  for (const Parameter& parameter : parameters)
    (parameter.trained ? elements.trained : elements.frozen) += parameter.local_count(place);
  return elements;
}

std::int64_t shared_head_elements(const Parameter& parameter) {
  const std::int64_t columns = parameter.count() / parameter.shape[parameter.expert ? 1 : 0];
  return 2 * std::int64_t{parameter.head_dim} * columns;
}

std::int64_t partial_gradient_elements(const std::vector<Parameter>& parameters,
                                       const ShardIndex& place, bool sequence_parallel) {
  std::int64_t total = 0;
  for (const Parameter& parameter : parameters) {
    if (!parameter.sums_over_tensor(place, sequence_parallel)) continue;
    total += parameter.shares_heads(place)
                 ? parameter.key_value_heads * shared_head_elements(parameter)
                 : parameter.local_count(place);
  }
  return total;
}

Bytes gradient_size(NumberFormat precision) {
  return std::max(size_of(NumberFormat::fp32), size_of(precision));
}

Bytes master_size(NumberFormat precision) {
  const Bytes wide = gradient_size(precision);
  return size_of(precision) < wide ? wide : Bytes(0);
}

HeldBytes held_bytes(const HeldElements& elements, Shard shard, int shards, int shard_index,
                     NumberFormat precision) {
  const auto share = [&](std::int64_t count) {
    return cut_begin(count, shards, shard_index + 1) - cut_begin(count, shards, shard_index);
  };
  if (shards == 1) shard = Shard::none;
  const std::int64_t all = elements.trained + elements.frozen;
  const std::int64_t mine = shard == Shard::none ? elements.trained : share(elements.trained);
  const Bytes value = size_of(precision), gradient = gradient_size(precision);
  HeldBytes bytes;
  bytes.values = all * value;
  bytes.gradient = elements.trained * gradient;
  bytes.optimizer = mine * (2 * gradient + master_size(precision));
  if (shard == Shard::full) {
    bytes.gathered = bytes.values;
    bytes.values = (mine + share(elements.frozen)) * value;
  }
  if (shard == Shard::gradients || shard == Shard::full) {
    bytes.whole_gradient = bytes.gradient;
    bytes.gradient = mine * gradient;
  }
  return bytes;
}

}  // namespace polyphony
