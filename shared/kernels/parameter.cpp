// Which elements of a parameter a rank holds and owns (shared/kernels/parameter.h).
#include <algorithm>

#include "shared/error.h"
#include "shared/kernels/parameter.h"

namespace polyphony {
namespace {

// Appends the run, or extends the last one if it is contiguous with it.
void append(std::vector<ElementRun>& runs, std::int64_t local, std::int64_t global,
            std::int64_t count) {
  if (count == 0) return;
  if (!runs.empty() && runs.back().local + runs.back().count == local &&
      runs.back().global + runs.back().count == global)
    runs.back().count += count;
  else
    runs.push_back({local, global, count});
}

// Returns the elements of `experts` × (dimensions before the split one) × `wanted` × (dimensions
// after it), at their positions in the local tensor, whose split dimension is `held`.
std::vector<ElementRun> make_runs(const Parameter& parameter, const ShardIndex& shard,
                                  const std::vector<Interval>& held,
                                  const std::vector<Interval>& wanted) {
  const int dimension = parameter.cut_dimension();
  std::int64_t outer = 1, length = 1, inner = 1;
  for (int d = 0; d < static_cast<int>(parameter.shape.size()); ++d) {
    const std::int64_t size = parameter.shape[static_cast<std::size_t>(d)];
    if (dimension < 0 || d > dimension)
      inner *= size;
    else if (d < dimension)
      outer *= size;
    else
      length = size;
  }
  const Interval experts = parameter.experts(shard);
  std::int64_t first_outer = 0;
  if (parameter.expert && dimension > 0) {
    outer = outer / parameter.shape[0];  // rows of one expert
    first_outer = experts.begin * outer;
    outer *= experts.size();
  } else if (parameter.expert) {  // only the expert dimension is split
    inner /= parameter.shape[0];
    first_outer = experts.begin;
    outer = experts.size();
  }
  std::int64_t local_length = 0;
  for (const Interval& part : held) local_length += part.size();
  std::vector<ElementRun> runs;
  for (std::int64_t o = 0; o < outer; ++o) {
    std::int64_t place = 0;
    for (const Interval& part : held) {
      if (std::find(wanted.begin(), wanted.end(), part) != wanted.end())
        append(runs, (o * local_length + place) * inner,
               ((first_outer + o) * length + part.begin) * inner, part.size() * inner);
      place += part.size();
    }
  }
  return runs;
}

}  // namespace

std::int64_t Parameter::count() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

int Parameter::cut_dimension() const {
  switch (cut) {
    case Cut::replicated:
      return -1;
    case Cut::rows:
    case Cut::heads:
      return expert ? 1 : 0;
    case Cut::columns:
      return expert ? 2 : 1;
  }
  return -1;
}

std::vector<Interval> Parameter::parts(const ShardIndex& shard) const {
  const int dimension = cut_dimension();
  if (dimension < 0) return {{0, 1}};
  const std::int64_t size = shape[static_cast<std::size_t>(dimension)];
  if (!shares_heads(shard))
    return {{cut_begin(size, shard.tensor, shard.tensor_index),
             cut_begin(size, shard.tensor, shard.tensor_index + 1)}};
  const int sharers = shard.tensor / key_value_heads, head = shard.tensor_index / sharers;
  const std::int64_t width = head_dim, first = head * (group_heads + 2) * width;
  const std::int64_t share = group_heads / sharers * width,
                     begin = first + shard.tensor_index % sharers * share;
  return {{begin, begin + share}, {first + group_heads * width, first + (group_heads + 2) * width}};
}

std::vector<Interval> Parameter::owned_parts(const ShardIndex& shard) const {
  if (copy) return {};
  std::vector<Interval> held = parts(shard);
  if (cut == Cut::replicated && shard.tensor_index > 0) return {};
  if (shares_heads(shard) && shard.tensor_index % (shard.tensor / key_value_heads) > 0)
    held.pop_back();
  return held;
}

Interval Parameter::experts(const ShardIndex& shard) const {
  if (!expert) return {0, 1};
  return {cut_begin(shape[0], shard.expert, shard.expert_index),
          cut_begin(shape[0], shard.expert, shard.expert_index + 1)};
}

std::vector<std::int64_t> Parameter::local_shape(const ShardIndex& shard) const {
  std::vector<std::int64_t> local = shape;
  if (expert) local[0] = experts(shard).size();
  const int dimension = cut_dimension();
  if (dimension < 0) return local;
  std::int64_t& length = local[static_cast<std::size_t>(dimension)];
  length = 0;
  for (const Interval& part : parts(shard)) length += part.size();
  return local;
}

std::int64_t Parameter::local_count(const ShardIndex& shard) const {
  std::int64_t product = 1;
  for (const std::int64_t size : local_shape(shard)) product *= size;
  return product;
}

std::vector<ElementRun> Parameter::runs(const ShardIndex& shard) const {
  const std::vector<Interval> held = parts(shard);
  return make_runs(*this, shard, held, held);
}

std::vector<ElementRun> Parameter::owned_runs(const ShardIndex& shard) const {
  return make_runs(*this, shard, parts(shard), owned_parts(shard));
}

bool Parameter::sums_over_tensor(const ShardIndex& shard, bool sequence_parallel) const {
  if (shard.tensor == 1 || !trained) return false;
  if (cut != Cut::replicated) return shares_heads(shard);
  switch (partial) {
    case Partial::never:
      return false;
    case Partial::sequence:
      return sequence_parallel;
    case Partial::always:
      return true;
  }
  return false;
}

}  // namespace polyphony
