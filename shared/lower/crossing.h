// Inside lower(): both ends of the links that cross ranks. Not for other folders.
#pragma once

#include <vector>

#include "shared/plan/links.h"

namespace polyphony::lowering {

// By work of a branch's table: the one whose ops stand for its own. Empty: each has its own.
using StandIns = std::vector<std::uint32_t>;

// One end of one direction of a crossing; entries are at().
struct Side {
  ChunkPlace place;
  const StandIns* stand_ins = nullptr;
  std::size_t tp = 1;              // tensor-parallel ranks that have ops
  int stride = 1;                  // each stands for so many
  bool sharded = false;            // each tensor-parallel rank has its own rows, else all have all
  std::vector<std::int64_t> rows;  // by work item, over the tensor-parallel ranks together
  std::vector<BufferId> buffers;   // invalid where there are no rows
  std::vector<std::vector<MessageId>> messages;
  // Of a destination whose first tensor-parallel rank leads (Bridge::leader): what that one passes
  // on; empty: nothing.
  std::vector<std::vector<MessageId>> relays = {};
  // By work item, of a leader under sequence parallelism: where it collects all rows, and what it
  // receives there.
  struct Led {
    BufferId buffer;
    std::vector<MessageId> messages;
  };
  std::vector<Led> led = {};
  std::size_t stand_in(std::size_t work) const {
    return stand_ins->empty() ? work : (*stand_ins)[work];
  }
  std::size_t at(std::size_t work, int t) const {
    return stand_in(work) * tp + static_cast<std::size_t>(t / stride);
  }
};
// A link that changes ranks or rows.
struct Crossing {
  ChunkLink link;
  Side forward_source, forward_destination;
  Side backward_source, backward_destination;  // empty when no gradient comes back
};

}  // namespace polyphony::lowering
