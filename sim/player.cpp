#include "sim/player.h"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u/Engine.hpp>

#include "shared/error.h"

namespace polyphony::sim {

namespace s4u = simgrid::s4u;

Player::Player(const Compiled& compiled, const CostTable& costs, const Platform& platform)
    : compiled_(compiled),
      costs_(costs),
      platform_(platform),
      start_(compiled.nodes.size(), 0.0),
      end_(compiled.nodes.size(), 0.0),
      waiting_(compiled.predecessors),
      in_flight_(compiled.nodes.size(), 0),
      left_(static_cast<std::uint32_t>(compiled.nodes.size())),
      sent_on_node_(costs.network.node_of.size()),
      sent_on_fabric_(costs.network.node_of.size()) {}

void Player::run() {
  s4u::Comm::on_completion_cb(
      [this](const s4u::Comm& comm) { flow_ended(*comm.get_data<Transfer>()); });
  draining_ = true;  // the first nodes begin together, in index order
  for (std::uint32_t node = 0; node < compiled_.nodes.size(); ++node) {
    if (compiled_.predecessors[node] == 0) begin(node);
  }
  draining_ = false;
  drain();
  s4u::Engine::get_instance()->run();
  POLYPHONY_CHECK(left_ == 0, left_ << " of " << compiled_.nodes.size() << " nodes never ended");
}

void Player::begin(std::uint32_t node) {
  const double now = s4u::Engine::get_clock();
  start_[node] = now;
  const NodeCost& cost = costs_.nodes[node];
  const double fixed = (cost.duration + cost.delay).count();
  if (fixed > 0) {
    simgrid::kernel::timer::Timer::set(now + fixed, [this, node] { launch_flows(node); });
  } else {
    launch_flows(node);
  }
}

void Player::launch_flows(std::uint32_t node) {
  const Range flows = costs_.nodes[node].flows;
  for (std::uint32_t i = flows.begin; i < flows.end; ++i) {
    if (crosses_links(costs_.flows[i])) ++in_flight_[node];
  }
  if (in_flight_[node] == 0) return finish(node);
  for (std::uint32_t i = flows.begin; i < flows.end; ++i) {
    const Flow& flow = costs_.flows[i];
    if (!crosses_links(flow)) continue;
    const Platform::Route route = platform_.route(flow);
    Transfer& transfer = new_transfer();
    transfer.node = node;
    transfer.flow = i;
    transfer.comm = s4u::Comm::sendto_init(route.source, route.destination);
    transfer.comm->set_payload_size(static_cast<std::uint64_t>(flow.bytes.value));
    transfer.comm->set_data(&transfer);
    transfer.comm->start();
  }
}

Player::Transfer& Player::new_transfer() {
  if (idle_.empty()) return transfers_.emplace_back();
  Transfer& transfer = *idle_.back();
  idle_.pop_back();
  return transfer;
}

// SimGrid still uses a Comm after its own call-back: it may be released only when the clock has
// moved.
void Player::release_parked(double now) {
  if (now <= parked_at_) return;
  parked_at_ = now;
  for (Transfer* transfer : parked_) {
    transfer->comm = nullptr;
    idle_.push_back(transfer);
  }
  parked_.clear();
}

void Player::flow_ended(Transfer& transfer) {
  release_parked(s4u::Engine::get_clock());
  parked_.push_back(&transfer);
  const Flow& flow = costs_.flows[transfer.flow];
  const bool inside = costs_.network.same_node(flow.source, flow.destination);
  (inside ? sent_on_node_ : sent_on_fabric_)[flow.source.value] += flow.bytes;
  ++flows_;
  if (--in_flight_[transfer.node] == 0) finish(transfer.node);
}

// A chain of joins may be as long as the Program: a list, not recursion.
void Player::finish(std::uint32_t node) {
  end_[node] = s4u::Engine::get_clock();
  --left_;
  ended_.push_back(node);
  if (!draining_) drain();
}

void Player::drain() {
  draining_ = true;
  for (std::size_t next = 0; next < ended_.size(); ++next) {
    const std::uint32_t node = ended_[next];
    const std::uint32_t stop = compiled_.successor_begin[node + 1];
    for (std::uint32_t i = compiled_.successor_begin[node]; i < stop; ++i) {
      const std::uint32_t successor = compiled_.successors[i];
      if (--waiting_[successor] == 0) begin(successor);
    }
  }
  ended_.clear();
  draining_ = false;
}

}  // namespace polyphony::sim
