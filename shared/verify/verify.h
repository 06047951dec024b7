// Is this Program well formed, and can it run to its end? Linear in ops. Every fault has a name, so
// that tests and people can tell them apart.
//   Order is judged in three linear orders of the compiled graph (shared/verify/verify_checks.h):
//   what they call unordered is unordered; a rare unordered pair that all three happen to separate
//   passes. A boundary buffer is filled once a step, by one compute op or by messages that tile its
//   rows. A Program of forwards only (evaluation) has no trainable parameter groups. Parameters,
//   gradients and optimizer state that no op allocates are held throughout.
#pragma once

#include <string>
#include <vector>

#include "shared/program/fault.h"
#include "shared/program/program.h"

namespace polyphony {

// Empty: the Program is sound. At most `limit` faults are listed.
std::vector<Fault> verify(const Program& program, std::size_t limit = 20);

}  // namespace polyphony
