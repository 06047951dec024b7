#include "tests/sim/random/random_program.h"

#include <utility>
#include <variant>

#include "shared/error.h"
#include "tests/sim/random/dice.h"
#include "tests/sim/random/random_graph.h"

namespace polyphony::tests {
namespace {

Seconds random_time(Dice& dice) {
  const double roll = dice.unit();
  if (roll < 0.1) return Seconds(0);
  if (roll < 0.5) return Seconds(static_cast<double>(dice.whole(1, 8)) * 0x1.0p-10);
  return Seconds(dice.spread(1e-6, 1e-2));
}

void add_ring(const Program& program, const Collective& collective, CostTable& costs) {
  const std::vector<Rank>& members = program.groups[collective.group.value].members;
  if (members.size() < 2) return;
  const Bytes bytes = ring_bytes(collective, members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    costs.flows.push_back({members[i], members[(i + 1) % members.size()], bytes});
  }
}

NodeCost random_cost(const Program& program, const Node& node, Dice& dice, CostTable& costs) {
  NodeCost cost;
  const auto begin = static_cast<std::uint32_t>(costs.flows.size());
  switch (node.kind) {
    case NodeKind::copy:  // none is made
    case NodeKind::join:
      break;
    case NodeKind::compute:
      cost.duration = random_time(dice);
      break;
    case NodeKind::message: {
      const Message& message = program.messages[node.what];
      cost.delay = dice.chance(0.3) ? Seconds(0) : random_time(dice) * 0.01;
      costs.flows.push_back({message.source, message.destination, message.bytes});
      break;
    }
    case NodeKind::collective:
      cost.delay = dice.chance(0.3) ? Seconds(0) : random_time(dice) * 0.1;
      add_ring(program, std::get<Collective>(program.ops[node.what].what), costs);
      break;
  }
  cost.flows = {begin, static_cast<std::uint32_t>(costs.flows.size())};
  return cost;
}

PipelineShape random_pipeline_shape(Dice& dice) {
  PipelineShape shape;
  shape.tensor = dice.small(1, 2);
  shape.lanes = dice.small(1, 3);
  shape.stages = dice.small(1, 4);
  shape.microbatches = dice.small(1, 4);
  shape.one_f_one_b = dice.chance(0.5);
  shape.trainable = dice.chance(0.8);
  shape.split_rows = dice.chance(0.5);
  return shape;
}

// Adds NVLink domains inside nodes, NICs shared by neighbors, leaf switches with rails, and
// degraded links.
void shape_network(Network& network, Dice& dice) {
  const auto ranks = static_cast<std::uint32_t>(network.node_of.size());
  network.shaped = true;
  network.bus_rate = BytesPerSecond(dice.spread(1e8, 1e11));
  network.leaf_rate = BytesPerSecond(dice.spread(1e8, 1e12));
  if (dice.chance(0.3)) network.connection = BytesPerSecond(dice.spread(1e8, 1e10));
  const auto domains = static_cast<std::uint32_t>(dice.whole(1, 3));  // of a node
  const auto sharers = static_cast<std::uint32_t>(dice.whole(1, 2));
  const auto leaf = static_cast<std::uint32_t>(dice.whole(1, ranks));
  const bool degraded = dice.chance(0.5), leaves = dice.chance(0.7);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    network.bus_of.push_back(network.node_of[r] / domains);
    network.nic_of.push_back(r / sharers);
    network.leaf_of.push_back(r / sharers * sharers / leaf);
    network.node_factor.push_back(degraded && dice.chance(0.3) ? dice.unit() : 1);
    network.nic_factor.push_back(degraded && dice.chance(0.3) ? dice.unit() : 1);
    if (leaves) network.leaves = std::max(network.leaves, network.leaf_of.back() + 1);
  }
}

}  // namespace

Bytes ring_bytes(const Collective& collective, std::size_t n) {
  const bool reduces = collective.kind == CollectiveKind::all_reduce ||
                       collective.kind == CollectiveKind::all_reduce_max;
  const auto size = static_cast<std::int64_t>(n);
  return Bytes((reduces ? 2 : 1) * (size - 1) * collective.bytes.value / size);
}

Program random_program(Shape shape, std::uint64_t seed) {
  if (shape == Shape::pipeline) {
    Dice dice(mix64(seed));
    return make_pipeline(random_pipeline_shape(dice), seed);
  }
  return make_graph(shape == Shape::serial, seed);
}

CostTable random_costs(const Program& program, const Compiled& compiled, std::uint64_t seed) {
  Dice dice(seed ^ 0xc057ull);
  CostTable costs;
  const auto per_node = static_cast<std::uint32_t>(dice.whole(1, program.ranks));
  for (std::uint32_t r = 0; r < program.ranks; ++r) costs.network.node_of.push_back(r / per_node);
  const bool round = dice.chance(0.3);
  costs.network.node_rate = BytesPerSecond(round ? 0x1.0p35 : dice.spread(1e9, 1e12));
  costs.network.fabric_rate = BytesPerSecond(round ? 0x1.0p33 : dice.spread(1e8, 1e11));
  if (dice.chance(0.4)) shape_network(costs.network, dice);
  for (const Node& node : compiled.nodes) {
    costs.nodes.push_back(random_cost(program, node, dice, costs));
  }
  return costs;
}

Case random_case(Shape shape, std::uint64_t seed) {
  Case result;
  result.program = random_program(shape, seed);
  auto compiled = compile(result.program);
  if (const auto* fault = std::get_if<Fault>(&compiled)) {
    POLYPHONY_CHECK(false, "seed " << seed << ": " << fault->text);
  }
  result.compiled = std::get<Compiled>(std::move(compiled));
  result.costs = random_costs(result.program, result.compiled, seed);
  // A NIC or a leaf switch of several ranks may carry two flows even if each rank has only one.
  if (shape == Shape::serial) result.costs.network.shaped = false;
  return result;
}

CostTable faster(const CostTable& costs, double k) {
  CostTable result = costs;
  for (NodeCost& cost : result.nodes) {
    cost.duration /= k;
    cost.delay /= k;
  }
  result.network.node_rate = result.network.node_rate * k;
  result.network.fabric_rate = result.network.fabric_rate * k;
  result.network.bus_rate = result.network.bus_rate * k;
  result.network.leaf_rate = result.network.leaf_rate * k;
  result.network.connection = result.network.connection * k;
  return result;
}

}  // namespace polyphony::tests
