// Plan + one global batch -> Program. Deterministic: every rank lowers the same batch to the same
// Program (equal hash).
//   Samples: the batch is cut into microbatches × lanes contiguous runs, sizes differing by at most
//   one; the encoder's work item i holds the images of the language microbatches it feeds, cut
//   again over the encoder's lanes. Order: shared/plan/schedule.h over all stages from the
//   encoder's first to the language module's last. Colocated: per encoder work item one encoder
//   forward, the language schedule of the microbatches it feeds, one encoder backward. Receives are
//   posted at most kReceiveSlots work items ahead of the compute op that reads them. Step tail of a
//   rank: gradient reduction per chunk (dp > 1), the world's step scalars, one update.
// Evaluation: the forwards alone, nothing kept, no tail.
// Does not model: buckets that overlap a reduction with the last backward of the same chunk.
#pragma once

#include "shared/plan/assign.h"
#include "shared/plan/plan.h"
#include "shared/program.h"

namespace polyphony {

inline constexpr int kReceiveSlots = 2;

// Needs a layout that check_layout() accepts and a batch of at least microbatches × dp samples.
enum class Pass : std::uint8_t { train, evaluate };

Program lower(const Scenario& scenario, const Layout& layout, const Plan& plan, const Batch& batch,
              Pass pass = Pass::train);

}  // namespace polyphony
