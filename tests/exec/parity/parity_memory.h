// Tensor memory of one rank over a step beside the Program's (shared/graph/memory.h): the largest
// sum of what lives between ops.
//   Measured: every block of tensor memory that the rank's threads ask for (tests/exec/
//   tensor_ledger.h), from the start of the op that makes it to the end of the op that frees it.
//   The Program's: parameters, gradients and optimizer state, and buffers, from the start of the op
//   that allocates them to the end of the op that frees them.
// Left out on both sides: what one op makes and frees (temporaries of kernels, recomputed tapes;
// tests/exec/layers/tape_test.cpp and recompute_test.cpp look inside).
// Not in the Program, and so
//   added to its tapes and to what weight parts wait with
//                        row_plan_bytes, weight_plan_bytes (tests/exec/support/row_plans.h): indices and
//                        tables by row
//                        rows that a router sends here beyond an even load, as they came in
//                        exchanges between experts
//   counted once         an output that several consumers read: one tensor, a buffer for each
//   counted from the end of a backward's input part, what it makes: in the place of the tape that it
//                        frees as it goes (the Program adds one layer's while it runs)
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
  // Of the Program's at its peak, and of the measured then: what was made before the step, and in
  // it.
  Bytes measured_before{}, program_before{};
};
using InputOf = std::function<const WorkInput&(WorkId)>;

// `times`: of the rank's ops.
PeakMemory peak_memory(const Program& program, Rank rank, const std::vector<OpTime>& times,
                       const std::vector<Block>& blocks, const InputOf& input_of,
                       const Traffic& traffic);

}  // namespace polyphony::exec::testing
