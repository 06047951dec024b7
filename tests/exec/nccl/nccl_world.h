// Runs ranks as threads over connect_nccl(), with the double of NCCL
// (tests/exec/nccl_double/nccl_double.h) and a queued device for each rank.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exec/gloo/gloo.h"
#include "exec/transport/communicator.h"

namespace polyphony::exec::testing {

using RankBody = std::function<void(Transport&, torch::Device)>;

// Returns what the body of each rank threw; empty texts for those that threw nothing. When it
// returns, all transports are gone.
std::vector<std::string> said_over_nccl(int ranks, bool in_order, const GlooOptions& options,
                                        const RankBody& body);

// Requires that no body throws, that NCCL was used without a mistake, and that no communicator is
// left.
void over_nccl(int ranks, bool in_order, const RankBody& body);
void check_nothing_left();

std::vector<Rank> first_ranks(int count);

}  // namespace polyphony::exec::testing
