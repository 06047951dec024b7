// Classifies the activities of a Program's graph by keys that are also valid in Programs of other
// layouts. The keys select the corresponding activities of a measured step.
//
//   label  the class in words, for tables: "language forward", "messages", "gradients all_reduce",
//          "update"
//   keys   from exactly this activity (rank, chunk) to all activities of its kind. If the same key
//          occurs in another Program, it is the same activity; if its modeled time differs, the
//          activity has another size there
#pragma once

#include <string>
#include <vector>

#include "shared/graph/compile.h"
#include "shared/hardware/network.h"

namespace polyphony::traces {

struct ActivityClass {
  std::string label;
  std::vector<std::string> keys;  // the most specific key first
};
// Returns the class of a node, which must not be a join.
ActivityClass class_of(const Program& program, const Compiled& compiled, std::uint32_t node,
                       const Network& network);
// Returns the label of an op, which is that of its nodes.
std::string class_label(const Program& program, const Op& op);

}  // namespace polyphony::traces
