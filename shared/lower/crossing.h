// Internal to lower(): the two ends of the links that cross ranks.
#pragma once

#include <vector>

#include "shared/plan/links.h"

namespace polyphony::lowering {

// For each work of a folded branch: the work whose ops represent its own, which may be itself.
// Empty if the branch is not folded.
using Representatives = std::vector<std::uint32_t>;

// One end of a crossing in one direction. Entries of the vectors are found with at().
struct Side {
  ChunkPlace place;
  const Representatives* representatives = nullptr;
  std::size_t tp = 1;              // number of tensor-parallel ranks that have ops
  int stride = 1;                  // number of tensor-parallel ranks that each represents
  bool backward = false;           // gradients
  bool sharded = false;            // each tensor-parallel rank has its own rows; else all have all
  std::vector<std::int64_t> rows;  // by work, summed over its tensor-parallel ranks
  std::vector<BufferId> buffers;   // invalid where there are no rows
  std::vector<std::vector<MessageId>> messages;
  // For a destination whose first tensor-parallel rank is the leader (Bridge::leader): the messages
  // by which the leader passes rows on. Empty if it has none to pass on.
  std::vector<std::vector<MessageId>> relays = {};
  // For a leader under sequence parallelism, by work: the buffer in which it collects all
  // rows, and the messages that it receives there.
  struct Led {
    BufferId buffer;
    std::vector<MessageId> messages;
  };
  std::vector<Led> led = {};
  std::size_t represented_by(std::size_t work) const {
    return representatives->empty() ? work : (*representatives)[work];
  }
  std::size_t at(std::size_t work, int t) const {
    return represented_by(work) * tp + static_cast<std::size_t>(t / stride);
  }
};
// A link whose rows move to other ranks or other places.
struct Crossing {
  ChunkLink link;
  Side forward_source, forward_destination;
  Side backward_source, backward_destination;  // empty if no gradient returns
};

}  // namespace polyphony::lowering
