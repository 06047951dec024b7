// The memory that one parameter group takes on a rank, computed before anything runs: elements of
// its flat tensors, and their bytes for every number format and sharding mode.
// exec/parameters/held_parameters.h allocates exactly this.
//   n trained and f frozen local elements, S ranks in the shard group. The share of k elements of
//   rank i is the run [cut_begin(k, S, i), cut_begin(k, S, i + 1)).
//
//   sharding    values          gradient                        optimizer state
//   none        n + f           n                               n
//   optimizer   n + f           n                               share of n
//   gradients   n + f           share; n during a backward      share of n
//   full        shares of n, f; share; n during a backward      share of n
//               n + f gathered
//
//   Values are in the compute format. Gradients and moments are fp64 if that is fp64, otherwise
//   fp32. If the compute format is smaller, there are fp32 master weights.
// Sources: ZeRO stages 1 to 3, Rajbhandari et al., arXiv 1910.02054 §5; 12 bytes of optimizer state
// per bf16 parameter: §3.1 of the same paper.
#pragma once

#include <vector>

#include "shared/chunk/parameters.h"
#include "shared/model/layout.h"
#include "shared/number_format.h"
#include "shared/units.h"

namespace polyphony {

struct HeldElements {
  std::int64_t trained = 0;
  std::int64_t frozen = 0;
  bool operator==(const HeldElements&) const = default;
};
// Returns the numbers of elements on the rank at `place`.
HeldElements held_elements(const std::vector<Parameter>& parameters, const ShardIndex& place);

// Returns the number of elements that the tensor-parallel group sums because their gradients are
// partial: those of replicated parameters, and, for a projection with shared key and value heads,
// the k and v rows of all heads. Equal on all ranks of the group.
std::int64_t partial_gradient_elements(const std::vector<Parameter>& parameters,
                                       const ShardIndex& place, bool sequence_parallel);
// Returns the elements of k and v of one key/value head, for a parameter with shares_heads().
std::int64_t shared_head_elements(const Parameter& parameter);

struct HeldBytes {
  Bytes values{};          // resident for the whole step
  Bytes gathered{};        // full: resident from a gather to its release
  Bytes gradient{};        // resident for the whole step
  Bytes whole_gradient{};  // gradients, full: resident from a backward to its reduce_scatter
  Bytes optimizer{};
  bool operator==(const HeldBytes&) const = default;
};
// Returns the bytes on rank `shard_index` of `shards` ranks.
HeldBytes held_bytes(const HeldElements& elements, Shard shard, int shards, int shard_index,
                     NumberFormat precision);
// Return the size of one element's gradient, which is also that of each of its moments, and of its
// master weight (0 if it has none).
Bytes gradient_size(NumberFormat precision);
Bytes master_size(NumberFormat precision);

}  // namespace polyphony
