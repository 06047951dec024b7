#include "sim/simgrid/player.h"

#include <algorithm>
#include <simgrid/s4u/Engine.hpp>

#include "shared/error.h"

namespace polyphony::sim {

namespace s4u = simgrid::s4u;
using simgrid::kernel::timer::Timer;

Player::Player(const Compiled& compiled, const CostTable& costs, const Platform& platform)
    : compiled_(compiled),
      costs_(costs),
      platform_(platform),
      left_(static_cast<std::uint32_t>(compiled.nodes.size())),
      sent_on_node_(costs.network.node_of.size()),
      sent_on_fabric_(costs.network.node_of.size()) {
  nodes_.reserve(compiled.nodes.size());
  for (std::size_t node = 0; node < compiled.nodes.size(); ++node) {
    const NodeCost& cost = costs.nodes[node];
    nodes_.push_back(
        {.fixed = (cost.duration + cost.delay).count(),
         .flows = cost.flows,
         .successors = {compiled.successor_begin[node], compiled.successor_begin[node + 1]},
         .waiting = compiled.predecessors[node]});
  }
}

void Player::run() {
  s4u::Comm::on_completion_cb(
      [this](const s4u::Comm& comm) { flow_ended(*comm.get_data<Transfer>()); });
  draining_ = true;  // start all first nodes, in the order of their index, before any successor
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (compiled_.predecessors[node] == 0) begin(node);
  }
  draining_ = false;
  drain();
  set_alarm();
  s4u::Engine::get_instance()->run();
  POLYPHONY_CHECK(left_ == 0, left_ << " of " << compiled_.nodes.size() << " nodes never ended");
}

void Player::begin(std::uint32_t node) {
  State& state = nodes_[node];
  state.start = now_;
  if (state.fixed <= 0) return launch_flows(node);
  queue_.push_back({now_ + state.fixed, actions_++, node});
  std::push_heap(queue_.begin(), queue_.end());
}

void Player::set_alarm() {
  if (queue_.empty()) return;
  const double date = queue_.front().date;
  if (alarm_ != nullptr && alarm_->get_date() <= date) return;
  if (alarm_ != nullptr) alarm_->remove();
  alarm_ = Timer::set(date, [this] { wake(); });
}

void Player::wake() {
  alarm_ = nullptr;
  now_ = s4u::Engine::get_clock();
  while (!queue_.empty() && queue_.front().date <= now_) {
    std::pop_heap(queue_.begin(), queue_.end());
    const std::uint32_t node = queue_.back().node;
    queue_.pop_back();
    launch_flows(node);
  }
  set_alarm();
}

void Player::launch_flows(std::uint32_t node) {
  State& state = nodes_[node];
  for (std::uint32_t i = state.flows.begin; i < state.flows.end; ++i) {
    if (crosses_links(costs_.flows[i])) ++state.in_flight;
  }
  if (state.in_flight == 0) return finish(node);
  for (std::uint32_t i = state.flows.begin; i < state.flows.end; ++i) {
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

// Releases finished transfers. SimGrid still uses a Comm after its completion callback, so it may
// be released only after the clock has advanced.
void Player::release_parked() {
  if (now_ <= parked_at_) return;
  parked_at_ = now_;
  for (Transfer* transfer : parked_) {
    transfer->comm = nullptr;
    idle_.push_back(transfer);
  }
  parked_.clear();
}

void Player::flow_ended(Transfer& transfer) {
  now_ = s4u::Engine::get_clock();
  release_parked();
  parked_.push_back(&transfer);
  const Flow& flow = costs_.flows[transfer.flow];
  const Network::Way way = costs_.network.way(flow.source, flow.destination);
  if (way != Network::Way::host)
    (way >= Network::Way::leaf ? sent_on_fabric_ : sent_on_node_)[flow.source.value] += flow.bytes;
  ++flows_;
  if (--nodes_[transfer.node].in_flight > 0) return;
  finish(transfer.node);
  set_alarm();
}

// Uses a list instead of recursion: a chain of nodes without duration may be as long as the
// Program.
void Player::finish(std::uint32_t node) {
  nodes_[node].end = now_;
  --left_;
  ended_.push_back(node);
  if (!draining_) drain();
}

void Player::drain() {
  draining_ = true;
  for (std::size_t next = 0; next < ended_.size(); ++next) {
    const Range successors = nodes_[ended_[next]].successors;
    for (std::uint32_t i = successors.begin; i < successors.end; ++i) {
      const std::uint32_t successor = compiled_.successors[i];
      if (--nodes_[successor].waiting == 0) begin(successor);
    }
  }
  ended_.clear();
  draining_ = false;
}

}  // namespace polyphony::sim
