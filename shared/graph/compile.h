// The Program as a graph of activities, in topological order: what estimate() walks and the SimGrid
// runner plays.
//   node kinds: `join` (takes no time: the start or end of an op made of several parts), `compute`,
//   `message`, `collective`, `copy`. An exchange op is a start join, one node per message (shared with the
//   other end), and an end join unless it has one message, which then ends it. A collective
//   instance, and a compute op with inner collectives, is one node shared by its group. Edges: 2
//   per member and message, never n×n.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "shared/program/fault.h"
#include "shared/program/program.h"

namespace polyphony {

enum class NodeKind : std::uint8_t { join, compute, message, collective, copy };

struct Node {
  NodeKind kind = NodeKind::join;
  std::uint32_t what =
      0;  // join, compute, collective, copy: an op id (of the first member); message: a message id
  bool operator==(const Node&) const = default;
};

struct Compiled {
  std::vector<Node> nodes;  // topological order: every edge goes to a larger index
  std::vector<std::uint32_t> successor_begin;  // nodes + 1 entries
  std::vector<std::uint32_t> successors;       // in index order
  std::vector<std::uint32_t> predecessors;     // how many, per node
  std::vector<std::uint32_t> op_start;         // by op: the node whose start is the op's start
  std::vector<std::uint32_t> op_end;           // by op: the node whose end is the op's end
  std::vector<std::uint32_t> busy_begin;       // compute streams + 1 entries
  std::vector<std::uint32_t> busy_nodes;       // of each compute stream's ops, in order
};

// A cycle comes back as a Fault whose text is the path. Needs valid indices (verify's first check).
std::variant<Compiled, Fault> compile(const Program& program);

}  // namespace polyphony
