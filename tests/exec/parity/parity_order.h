// Checks that the ranks ran a Program in order, from the start and end of each op on one clock.
//   The ops of a stream run one after another. No op starts before the ops that it waits for have
//   ended. No receive ends before its send begins, nor, between different ranks, the other way
//   round. No collective ends before all its members have begun it.
#pragma once

#include <string>
#include <vector>

#include "exec/torch_pch.h"
#include "shared/program/program.h"

namespace polyphony::exec::testing {

// Describes the first violation; empty if there is none. `times`: by rank, start and end in
// seconds, [ops of the rank × 2]. `apart`: by how much clocks of different ranks may differ.
// `queued`: one thread queued all ops, so that those of a stream ran in the order of their turns,
// and exchanges with different ranks side by side (shared/program/queue_order.h).
std::string find_disorder(const Program& program, const std::vector<torch::Tensor>& times,
                          double apart = 0, bool queued = false);

}  // namespace polyphony::exec::testing
