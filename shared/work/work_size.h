// What a layer is asked for: how much of which work, in which phase; and the kinds of collectives
// that may stand between its kernels.
#pragma once

#include <cstdint>

namespace polyphony {

enum class Phase : std::uint8_t { forward, backward, backward_input, backward_weight, recompute };
constexpr Phase last_of(Phase) { return Phase::recompute; }
// context: ranks that share a sequence; expert: ranks that share a layer's experts; cell: all that
// run a compute op in step, the union of its tensor, context and expert groups.
enum class GroupKind : std::uint8_t { tensor, context, expert, cell, data, world };
enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_reduce_max,
  all_gather,
  reduce_scatter,
  all_to_all
};

// What one work item asks of one module.
struct WorkSize {
  std::int64_t tokens = 0;  // rows of the packed axis, without class tokens (shared/work/rows.h)
  std::int64_t pairs =
      0;  // query-key pairs that attend, summed over sequences: n² bidirectional, n(n+1)/2 causal,
          // those of the mask else (shared/work/token_mask.h)
  std::int64_t text_tokens = 0;  // language: rows that come from the embedding table
  std::int64_t loss_tokens = 0;  // language: rows with a label
  std::int32_t sequences = 0;    // images, or samples for language
  std::int32_t samples = 0;      // language: of the work item on all context-parallel ranks
  std::int64_t gathered = 0;     // rows of all context-parallel ranks together
  std::int64_t condition = 0;    // diffusion: rows that its blocks read across
  std::int64_t cross_pairs = 0;  // diffusion: pairs of a token and such a row, by item
  std::int64_t window_pairs =
      0;  // as pairs, in blocks that attend inside windows (shared/work/rows.h)
  // language: pairs and window_pairs of all context-parallel ranks together
  std::int64_t gathered_pairs = 0, gathered_window_pairs = 0;
  auto operator<=>(const WorkSize&) const = default;
};

const char* name(Phase phase);
const char* name(CollectiveKind kind);

}  // namespace polyphony
