// How large the input of a compute op is, which phase it runs, and which kinds of collectives may
// stand between its kernels.
#pragma once

#include <cstdint>

#include "shared/enum_names.h"

namespace polyphony {

enum class Phase : std::uint8_t { forward, backward, backward_input, backward_weight, recompute };
constexpr auto names(Phase) {
  return names_of<Phase>("forward", "backward", "backward_input", "backward_weight", "recompute");
}
// context: ranks that share a sequence; expert: ranks that share a layer's experts; cell: all ranks
// that start a compute op together, because they share its tensor, context and expert groups
// (cell_ranks() in shared/plan/plan.h).
enum class GroupKind : std::uint8_t { tensor, context, expert, cell, data, world };
constexpr auto names(GroupKind) {
  return names_of<GroupKind>("tensor", "context", "expert", "cell", "data", "world");
}
enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_reduce_max,
  all_gather,
  reduce_scatter,
  all_to_all
};
constexpr auto names(CollectiveKind) {
  return names_of<CollectiveKind>("all_reduce", "all_reduce_max", "all_gather", "reduce_scatter",
                                  "all_to_all");
}

// Size of one microbatch as one module processes it.
struct WorkSize {
  std::int64_t tokens = 0;  // rows of the packed axis, without class tokens (shared/work/rows.h)
  std::int64_t pairs =
      0;  // query-key pairs that attend, summed over sequences: n² bidirectional, n(n+1)/2 causal,
          // otherwise those of the mask (shared/work/token_mask.h)
  std::int64_t text_tokens = 0;  // language: rows looked up in the embedding table
  std::int64_t loss_tokens = 0;  // language: rows with a label
  std::int32_t sequences = 0;    // images, or samples for language
  std::int32_t samples = 0;      // language: samples of the microbatch, all context-parallel ranks
  std::int64_t gathered = 0;     // rows of all context-parallel ranks together
  std::int64_t condition = 0;    // diffusion: conditioning rows that cross-attention reads
  std::int64_t cross_pairs = 0;  // diffusion: pairs of a token and a conditioning row of its item
  std::int64_t window_pairs =
      0;  // like `pairs`, for blocks that attend inside windows (shared/work/rows.h)
  // language: pairs and window_pairs of all context-parallel ranks together
  std::int64_t gathered_pairs = 0, gathered_window_pairs = 0;
  auto operator<=>(const WorkSize&) const = default;
};

}  // namespace polyphony
