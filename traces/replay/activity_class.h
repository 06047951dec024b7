// What an activity of a Program's graph is, in words that hold for Programs of other layouts too: what it is
// told by among those of a measured step.
//   label  its class, for people and tables: "language forward", "messages", "gradients all_reduce", "update"
//   keys   from this very activity (rank, chunk) to its kind at all; the same in another Program: the same
//          activity, of another size where its modelled time differs
#pragma once

#include <string>
#include <vector>

#include "shared/graph/compile.h"
#include "shared/hardware/network.h"

namespace polyphony::traces {

struct ActivityClass {
  std::string label;
  std::vector<std::string> keys;  // the narrowest first
};
// Of any node but a join.
ActivityClass class_of(const Program& program, const Compiled& compiled, std::uint32_t node,
                       const Network& network);
// Of an op: that of its nodes.
std::string class_label(const Program& program, const Op& op);

}  // namespace polyphony::traces
