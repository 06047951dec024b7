// Compiles a Program into a graph of activities in topological order. estimate() computes times on
// this graph, and the SimGrid runner simulates it.
//
// A node is a compute op, a message, a collective, a copy, or a join (the start or end of an op
// that has several parts; takes no time).
//   - An exchange op is a start join, one node per message, shared with the op at the other end,
//     and an end join. If it has a single message, the message node is its end.
//   - A collective, and a compute op with inner collectives, is one node shared by its group.
// The number of edges is linear: two per member of a collective and per message.
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
      0;  // message: a message id; other kinds: an op id (the first member's if shared)
  bool operator==(const Node&) const = default;
};

struct Compiled {
  std::vector<Node> nodes;  // topological order: every edge goes to a larger index
  std::vector<std::uint32_t> successor_begin;  // nodes + 1 entries
  std::vector<std::uint32_t> successors;       // in index order
  std::vector<std::uint32_t> predecessors;     // by node: number of predecessors
  std::vector<std::uint32_t> op_start;         // by op: the node whose start is the op's start
  std::vector<std::uint32_t> op_end;           // by op: the node whose end is the op's end
  std::vector<std::uint32_t> busy_begin;       // compute streams + 1 entries
  std::vector<std::uint32_t> busy_nodes;       // nodes of each compute stream's ops, in order
};

// Returns the compiled graph, or a Fault if the graph has a cycle; its text is the path of the
// cycle. All indices of the Program must be valid (the first check of verify()).
std::variant<Compiled, Fault> compile(const Program& program);

}  // namespace polyphony
