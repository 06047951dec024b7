// Checks that a Program is well formed and can run to its end. Takes time linear in the number of
// ops. Every fault has a name (FaultKind).
//
// Rules that are checked, in addition to the blocking rules of shared/program/program.h:
//   - A boundary buffer is filled once per step, by one compute op or by messages that tile its
//     rows.
//   - A Program of forward passes only (evaluation) has no trainable parameter groups.
//   - Parameters, gradients and optimizer state that no op allocates are resident for the whole
//     step.
//
// Whether one op precedes another is decided by three linear orders of the compiled graph
// (shared/verify/verify_checks.h). A pair that they report as unordered is unordered. The converse
// can fail: in rare cases an unordered pair has the same order in all three, and a fault is missed.
#pragma once

#include <string>
#include <vector>

#include "shared/program/fault.h"
#include "shared/program/program.h"

namespace polyphony {

// Returns the faults of the Program, at most `limit`; empty if the Program is correct.
std::vector<Fault> verify(const Program& program, std::size_t limit = 20);

}  // namespace polyphony
