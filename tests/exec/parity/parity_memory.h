// Compares the tensor memory of one rank over a step with the Program's (shared/graph/memory.h):
// the largest sum of what exists between ops.
//   Measured: every block of tensor memory that the rank's threads allocate (tests/exec/
//   tensor_ledger.h), from the start of the op that makes it to the end of the op that frees it.
//   The Program's: parameters, gradients and optimizer state, and buffers, from the start of the op
//   that allocates them to the end of the op that frees them.
// Omitted on both sides: what one op allocates and frees (temporaries of kernels, recomputed
// activations; tests/exec/chunk/tape_test.cpp and recompute_test.cpp check these).
//
// Not modeled by the Program, and therefore
//   added to its saved activations and to what weight parts wait with
//                        row_plan_bytes, weight_plan_bytes (tests/exec/support/row_plans.h):
//                        indices and tables by row
//                        rows that a router sends here beyond an even load, as received in
//                        exchanges between experts
//   counted once         an output that several consumers read: one tensor, a buffer for each
//   counted from the end of a backward's input part: what it allocates, since that replaces the
//   saved
//                        activations that it frees meanwhile (the Program adds those of one layer
//                        while it runs)
//   not measured         the batch (packed outside the ledger), copies inside a transport
//                        (tests/exec/support/counted_transport.h)
//   unexplained          a scalar or two per chunk and parameter group: autograd's anchor, AdamW's
//                        step counter; 12 bytes, which the bar of 2 % covers
#pragma once

#include <functional>

#include "exec/work_input.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "tests/exec/support/counted_transport.h"
#include "tests/exec/support/tensor_ledger.h"

namespace polyphony::exec::testing {

struct PeakMemory {
  Bytes measured{}, program{};
  // The Program's memory at its peak, and the measured memory then: allocated before the step, and
  // in it.
  Bytes measured_before{}, program_before{};
};
using InputOf = std::function<const WorkInput&(WorkId)>;

// `times`: start and end of the rank's ops.
PeakMemory peak_memory(const Program& program, Rank rank, const std::vector<OpTime>& times,
                       const std::vector<Block>& blocks, const InputOf& input_of,
                       const Traffic& traffic);

}  // namespace polyphony::exec::testing
