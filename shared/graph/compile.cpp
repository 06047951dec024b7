#include "shared/graph/compile.h"

#include <algorithm>
#include <string>
#include <utility>

#include "shared/error.h"

namespace polyphony {
namespace {

constexpr std::uint32_t kNoNode = 0xffffffffu;

struct Edge {
  std::uint32_t from, to;
};

// The graph before its nodes are put in topological order.
struct Draft {
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<std::uint32_t> op_start, op_end;
};

// Makes the nodes, and finds those that several ops share by their position in flat tables.
class NodeMaker {
 public:
  explicit NodeMaker(const Program& program)
      : program_(program),
        message_node_(program.messages.size(), kNoNode),
        rendezvous_(program.groups.size()),
        collectives_(program.groups.size()),
        last_rank_(program.groups.size()),
        next_in_group_(program.groups.size(), 0) {
    draft_.nodes.reserve(program.ops.size() + program.exchange_messages.size());
    draft_.edges.reserve(2 * program.ops.size() + 2 * program.exchange_messages.size());
    draft_.op_start.resize(program.ops.size());
    draft_.op_end.resize(program.ops.size());
  }

  // Ops must be visited rank by rank: the nth compute op of a group on each member is one node.
  void visit(std::uint32_t op) {
    const Op& value = program_.ops[op];
    if (const auto* exchange = std::get_if<Exchange>(&value.what)) {
      visit_exchange(op, *exchange);
      return;
    }
    std::uint32_t node = kNoNode;
    if (const auto* collective = std::get_if<Collective>(&value.what)) {
      node = shared_node(collectives_[collective->group.value], collective->sequence,
                         {NodeKind::collective, op});
    } else if (value.group.valid()) {
      node = shared_node(rendezvous_[value.group.value],
                         next_rendezvous(value.group, program_.rank_of(value)),
                         {NodeKind::compute, op});
    } else {
      const bool copies = std::holds_alternative<HostCopy>(value.what);
      node = add({copies ? NodeKind::copy : NodeKind::compute, op});
    }
    draft_.op_start[op] = draft_.op_end[op] = node;
  }

  Draft take() { return std::move(draft_); }

 private:
  std::uint32_t add(Node node) {
    draft_.nodes.push_back(node);
    return static_cast<std::uint32_t>(draft_.nodes.size() - 1);
  }

  std::uint32_t shared_node(std::vector<std::uint32_t>& instances, std::uint32_t position,
                            Node node) {
    if (position >= instances.size()) instances.resize(position + 1, kNoNode);
    if (instances[position] == kNoNode) instances[position] = add(node);
    return instances[position];
  }

  std::uint32_t next_rendezvous(GroupId group, Rank rank) {
    if (last_rank_[group.value] != rank) {
      last_rank_[group.value] = rank;
      next_in_group_[group.value] = 0;
    }
    return next_in_group_[group.value]++;
  }

  void visit_exchange(std::uint32_t op, const Exchange& exchange) {
    const std::uint32_t start = add({NodeKind::join, op});
    for (std::uint32_t i = exchange.messages.begin; i < exchange.messages.end; ++i) {
      const std::uint32_t message = program_.exchange_messages[i].value;
      if (message_node_[message] == kNoNode)
        message_node_[message] = add({NodeKind::message, message});
      draft_.edges.push_back({start, message_node_[message]});
    }
    draft_.op_start[op] = start;
    if (exchange.messages.size() == 1) {
      draft_.op_end[op] = draft_.edges.back().to;
      return;
    }
    const std::uint32_t end = add({NodeKind::join, op});
    for (std::uint32_t i = exchange.messages.begin; i < exchange.messages.end; ++i) {
      draft_.edges.push_back({message_node_[program_.exchange_messages[i].value], end});
    }
    if (exchange.messages.size() == 0) draft_.edges.push_back({start, end});
    draft_.op_end[op] = end;
  }

  const Program& program_;
  Draft draft_;
  std::vector<std::uint32_t> message_node_;
  std::vector<std::vector<std::uint32_t>> rendezvous_, collectives_;  // by group, then instance
  std::vector<Rank> last_rank_;
  std::vector<std::uint32_t> next_in_group_;
};

// Adds the edges to an op from the previous op of its stream and from all ops that it waits for.
void add_order(const Program& program, Draft& draft) {
  std::vector<std::uint32_t> last_of_stream(program.streams.size(), kNoNode);
  for (std::uint32_t op = 0; op < program.ops.size(); ++op) {
    const Op& value = program.ops[op];
    const std::uint32_t previous = std::exchange(last_of_stream[value.stream.value], op);
    if (previous != kNoNode) draft.edges.push_back({draft.op_end[previous], draft.op_start[op]});
    for (std::uint32_t i = value.waits_for.begin; i < value.waits_for.end; ++i) {
      const std::uint32_t before = program.waits[i].value;
      if (before == previous) continue;
      draft.edges.push_back({draft.op_end[before], draft.op_start[op]});
    }
  }
}

Draft make_draft(const Program& program) {
  NodeMaker maker(program);
  for (const Range& range : program.rank_ops) {
    for (std::uint32_t op = range.begin; op < range.end; ++op) maker.visit(op);
  }
  Draft draft = maker.take();
  add_order(program, draft);
  return draft;
}

// The draft's edges by source. Each list is sorted and has no duplicates.
struct Adjacency {
  std::vector<std::uint32_t> begin, to;
};

Adjacency by_source(const Draft& draft) {
  Adjacency result;
  result.begin.assign(draft.nodes.size() + 2, 0);
  for (const Edge& edge : draft.edges) ++result.begin[edge.from + 2];
  for (std::size_t i = 2; i < result.begin.size(); ++i) result.begin[i] += result.begin[i - 1];
  result.to.resize(draft.edges.size());
  for (const Edge& edge : draft.edges) result.to[result.begin[edge.from + 1]++] = edge.to;
  result.begin.pop_back();

  std::uint32_t kept = 0;
  std::uint32_t first = 0;
  for (std::size_t node = 0; node + 1 < result.begin.size(); ++node) {
    const std::uint32_t last = result.begin[node + 1];
    std::sort(result.to.begin() + first, result.to.begin() + last);
    const std::uint32_t start = kept;
    for (std::uint32_t i = first; i < last; ++i) {
      if (kept == start || result.to[kept - 1] != result.to[i]) result.to[kept++] = result.to[i];
    }
    result.begin[node] = start;
    first = last;
  }
  result.begin.back() = kept;
  result.to.resize(kept);
  return result;
}

std::vector<std::uint32_t> count_predecessors(const Adjacency& graph, std::size_t nodes) {
  std::vector<std::uint32_t> count(nodes, 0);
  for (const std::uint32_t to : graph.to) ++count[to];
  return count;
}

// Kahn's algorithm with a stack: it follows one rank until that has to wait, which keeps neighbors
// close in memory. Nodes on a cycle, and those that depend on one, are omitted.
std::vector<std::uint32_t> topological_order(const Adjacency& graph,
                                             std::vector<std::uint32_t> waiting) {
  std::vector<std::uint32_t> order, ready;
  order.reserve(waiting.size());
  for (std::size_t node = waiting.size(); node-- > 0;) {
    if (waiting[node] == 0) ready.push_back(static_cast<std::uint32_t>(node));
  }
  while (!ready.empty()) {
    const std::uint32_t node = ready.back();
    ready.pop_back();
    order.push_back(node);
    for (std::uint32_t i = graph.begin[node + 1]; i-- > graph.begin[node];) {
      if (--waiting[graph.to[i]] == 0) ready.push_back(graph.to[i]);
    }
  }
  return order;
}

std::string describe_node(const Program& program, const Node& node) {
  if (node.kind == NodeKind::message) {
    const Message& message = program.messages[node.what];
    return "message " + std::to_string(node.what) + " from rank " +
           std::to_string(message.source.value) + " to rank " +
           std::to_string(message.destination.value);
  }
  return "rank " + std::to_string(program.rank_of(program.ops[node.what]).value) + " " +
         describe(program, OpId(node.what)) + " (op " + std::to_string(node.what) + ")";
}

// Walks backwards over the nodes that never became ready until a node repeats, which gives the
// cycle.
Fault cycle_fault(const Program& program, const Draft& draft,
                  const std::vector<std::uint32_t>& order) {
  std::vector<char> done(draft.nodes.size(), 0);
  for (const std::uint32_t node : order) done[node] = 1;
  std::vector<std::uint32_t> before(draft.nodes.size(), kNoNode);
  for (const Edge& edge : draft.edges) {
    if (!done[edge.from]) before[edge.to] = std::min(before[edge.to], edge.from);
  }
  std::uint32_t node = 0;
  while (done[node]) ++node;
  std::vector<char> seen(draft.nodes.size(), 0);
  while (!seen[node]) {
    seen[node] = 1;
    node = before[node];
  }
  std::vector<std::uint32_t> path{node};
  for (std::uint32_t at = before[node]; at != node; at = before[at]) path.push_back(at);
  path.push_back(node);
  std::reverse(path.begin(), path.end());

  constexpr std::size_t kShown = 24;  // steps, so that the line stays readable
  std::string text, last;
  std::size_t shown = 0;
  for (const std::uint32_t at : path) {
    std::string step = describe_node(program, draft.nodes[at]);
    if (step == last) continue;
    if (++shown > kShown) {
      text += " -> … (" + std::to_string(path.size()) + " steps)";
      break;
    }
    text += (text.empty() ? "" : " -> ") + step;
    last = std::move(step);
  }
  return {FaultKind::cycle, text};
}

// Lists the nodes of compute streams. Each of their ops is one node.
void list_busy_nodes(const Program& program, Compiled& result) {
  std::vector<std::uint32_t> place(program.streams.size(), kNoNode);
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < program.streams.size(); ++i) {
    if (program.streams[i].kind == StreamKind::compute) place[i] = count++;
  }
  result.busy_begin.assign(count + 2, 0);
  for (const Op& op : program.ops) {
    if (place[op.stream.value] != kNoNode) ++result.busy_begin[place[op.stream.value] + 2];
  }
  for (std::size_t i = 2; i < result.busy_begin.size(); ++i) {
    result.busy_begin[i] += result.busy_begin[i - 1];
  }
  result.busy_nodes.resize(result.busy_begin.back());
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const std::uint32_t stream = place[program.ops[op].stream.value];
    if (stream != kNoNode) result.busy_nodes[result.busy_begin[stream + 1]++] = result.op_start[op];
  }
  result.busy_begin.pop_back();
}

Compiled renumber(Draft&& draft, const Adjacency& graph,
                  const std::vector<std::uint32_t>& predecessors,
                  const std::vector<std::uint32_t>& order) {
  const std::size_t count = order.size();
  std::vector<std::uint32_t> position(count);
  for (std::uint32_t i = 0; i < count; ++i) position[order[i]] = i;

  Compiled result;
  result.nodes.resize(count);
  result.predecessors.resize(count);
  result.successor_begin.resize(count + 1);
  result.successors.reserve(graph.to.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t node = order[i];
    result.nodes[i] = draft.nodes[node];
    result.predecessors[i] = predecessors[node];
    result.successor_begin[i] = static_cast<std::uint32_t>(result.successors.size());
    for (std::uint32_t k = graph.begin[node]; k < graph.begin[node + 1]; ++k) {
      result.successors.push_back(position[graph.to[k]]);
    }
    std::sort(result.successors.begin() + result.successor_begin[i], result.successors.end());
  }
  result.successor_begin[count] = static_cast<std::uint32_t>(result.successors.size());
  result.op_start = std::move(draft.op_start);
  result.op_end = std::move(draft.op_end);
  for (std::uint32_t& node : result.op_start) node = position[node];
  for (std::uint32_t& node : result.op_end) node = position[node];
  return result;
}

}  // namespace

std::variant<Compiled, Fault> compile(const Program& program) {
  Draft draft = make_draft(program);
  const Adjacency graph = by_source(draft);
  const std::vector<std::uint32_t> predecessors = count_predecessors(graph, draft.nodes.size());
  const std::vector<std::uint32_t> order = topological_order(graph, predecessors);
  if (order.size() != draft.nodes.size()) return cycle_fault(program, draft, order);
  Compiled result = renumber(std::move(draft), graph, predecessors, order);
  list_busy_nodes(program, result);
  return result;
}

}  // namespace polyphony
