// What a rank holds of one parameter group, counted before anything runs: elements of its flat
// tensors and their bytes in every number format and sharding. exec/parameters/held_parameters.h allocates
// exactly this.
//   n trained, f frozen local elements, S ranks of the shard group; rank i's share of k elements is
//   the run [cut_begin(k, S, i), cut_begin(k, S, i + 1)).
//               values          gradient                 optimizer
//   none        n + f           n                        n
//   optimizer   n + f           n                        share of n
//   gradients   n + f           share; n in a backward   share of n
//   full        shares of n, f; share; n in a backward   share of n
//               n + f gathered
//   Elements: values in the compute format; gradients and moments in fp64 for fp64, else fp32; fp32
//   master weights where the compute format is smaller than that.
// Sources: ZeRO stages 1 to 3, Rajbhandari et al., arXiv 1910.02054 §5; 12 bytes of state a bf16
// parameter: there, §3.1.
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
// On the rank at `place`.
HeldElements held_elements(const std::vector<Parameter>& parameters, const ShardIndex& place);

// What the sum of partial gradients over the tensor-parallel group moves: the replicated parameters
// whose gradients are partial, and of a projection with shared key and value heads the k and v rows
// of all heads. Equal on all ranks of the group.
std::int64_t partial_gradient_elements(const std::vector<Parameter>& parameters,
                                       const ShardIndex& place, bool sequence_parallel);
// Elements of k and v of one key/value head, of a parameter with Parameter::shares_heads().
std::int64_t shared_head_elements(const Parameter& parameter);

struct HeldBytes {
  Bytes values{};          // held all the time
  Bytes gathered{};        // full: from a gather to its release
  Bytes gradient{};        // held all the time
  Bytes whole_gradient{};  // gradients, full: from a backward to its reduce_scatter
  Bytes optimizer{};
  bool operator==(const HeldBytes&) const = default;
};
HeldBytes held_bytes(const HeldElements& elements, Shard shard, int shards, int shard_index,
                     NumberFormat precision);
// Of one element: its gradient (also each of its moments), and its master weight (0: none).
Bytes gradient_size(NumberFormat precision);
Bytes master_size(NumberFormat precision);

}  // namespace polyphony
