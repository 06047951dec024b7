// Plan + one global batch -> Program. Deterministic: every rank lowers the same batch to the same
// Program (equal hash).
//   Work items: shared/plan/assign.h. Order: shared/plan/schedule.h; encoders with ranks of their
//   own run as far ahead as the language module's first rank asks. Encoders on the language
//   module's ranks: per encoder work item their forward, the language schedule of the microbatches
//   it feeds, their backward. Receives are posted at most kReceiveSlots work items ahead of the
//   compute op that reads them. Fully sharded parameters are gathered one chunk ahead of their use;
//   divided gradients are summed after every backward. Step tail of a rank: what is left of the
//   gradient sums, chunk by chunk, the world's step scalars, one update, gathers of what the update
//   changed.
// Evaluation: the forwards alone, nothing kept, no tail.
// Buffers are as large as the executor's own; where a prediction is about another software stack,
// as large as that one's (shared/plan/stack_sizes.h). Nothing else in a Program depends on it.
#pragma once

#include "shared/hardware/software.h"
#include "shared/plan/plan.h"
#include "shared/program/program.h"

namespace polyphony {

inline constexpr int kReceiveSlots = 2;

// Needs a layout that check_layout() accepts and a batch of at least microbatches × dp samples.
enum class Pass : std::uint8_t { train, evaluate };

Program lower(const Scenario& scenario, const Layout& layout, const Plan& plan, const Batch& batch,
              Pass pass = Pass::train, const SoftwareStack& stack = {});

}  // namespace polyphony
