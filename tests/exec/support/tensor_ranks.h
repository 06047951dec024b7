// Runs a test on the ranks of one tensor-parallel group, as threads of this process.
#pragma once

#include <vector>

#include "exec/torch_pch.h"
#include "exec/transport/in_process.h"

namespace polyphony::exec::testing {

// Calls body(rank, group) on each of `tp` ranks, which compute with one thread each.
template <class Body>
void on_tensor_ranks(int tp, const Body& body) {
  std::vector<Rank> members;
  for (int i = 0; i < tp; ++i) members.push_back(Rank(static_cast<std::size_t>(i)));
  run_in_process(tp, [&](Transport& transport) {
    torch::set_num_threads(1);
    const auto group = transport.make_group("tensor", members);
    body(transport.rank().value, group.get());
  });
}

}  // namespace polyphony::exec::testing
