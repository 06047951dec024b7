#include "shared/cost/collective_algorithms.h"

#include <cmath>

namespace polyphony {
namespace {

constexpr Seconds us(double value) { return Seconds(value * 1e-6); }
constexpr LibraryProtocol kRings[] = {{us(6.6), us(0.6), us(2.7), 0.5},
                                      {us(14.0), us(1.9), us(4.0), 0.92},
                                      {us(8.4), us(3.4), us(14.0), 1.0}};
constexpr LibraryProtocol kTrees[] = {{us(6.8), us(0.6), us(5.0), 0.46},
                                      {us(14.0), us(1.25), us(8.5), 0.85},
                                      {us(8.4), us(4.0), us(14.0), 0.92}};

constexpr LibraryProtocol kSwitch[] = {{us(0), us(25), us(0), 1}};  // protocol Simple only

constexpr LibraryProtocol kRcclRings[] = {{us(12), us(0.8), us(9.5), 0.08},
                                          {us(17), us(2.1), us(25), 1.0}};
constexpr LibraryProtocol kRcclTrees[] = {{us(12), us(0.9), us(10.5), 0.06},
                                          {us(17), us(2.3), us(25), 0.59}};

bool exchanges(const Ring&, CollectiveKind kind) { return kind == CollectiveKind::all_to_all; }
bool goes_round(const Ring& ring, CollectiveKind kind) { return !exchanges(ring, kind); }
bool grows_trees(const Ring& ring, CollectiveKind kind) {
  return reduces_all(kind) && ring.nodes > 1;
}

bool switch_reduces(const Ring& ring, CollectiveKind kind) {
  return reduces_all(kind) && ring.nodes == 1 && ring.in_switch > 0;
}

// One hop: all transfers run at the same time.
Hops exchange_hops(const Ring& ring, CollectiveKind) { return {1, ring.nodes > 1 ? 1.0 : 0.0}; }

// Once around the group; twice for an all-reduce, first to reduce and then to distribute.
Hops ring_steps(const Ring& ring, CollectiveKind kind) {
  const int rounds = reduces_all(kind) ? 2 : 1;
  const double between = ring.nodes > 1 ? rounds * (ring.nodes - 1) : 0;
  return {ring_hops(kind, ring.ranks) - between, between};
}

// A chain inside each node, a tree over the nodes; up, then down.
Hops tree_steps(const Ring& ring, CollectiveKind) {
  const double local = static_cast<double>(ring.ranks) / ring.nodes;
  return {2 * (local - 1), 2 * std::log2(static_cast<double>(ring.nodes))};
}

Hops one_hop(const Ring&, CollectiveKind) { return {1, 0}; }
double switch_gain(const Ring& ring) {
  return ring.in_switch * 2 * (ring.ranks - 1) / (ring.ranks + 1);
}

constexpr CollectiveAlgorithm kNccl[] = {
    {"exchange", kRings, exchanges, exchange_hops},
    {"ring", kRings, goes_round, ring_steps},
    {"tree", kTrees, grows_trees, tree_steps},
    {"in-switch", kSwitch, switch_reduces, one_hop, switch_gain},
};
constexpr CollectiveAlgorithm kRccl[] = {
    {"exchange", kRcclRings, exchanges, exchange_hops},
    {"ring", kRcclRings, goes_round, ring_steps},
    {"tree", kRcclTrees, grows_trees, tree_steps},
};

}  // namespace

std::span<const CollectiveAlgorithm> collective_algorithms(CollectiveLibrary library) {
  switch (library) {
    case CollectiveLibrary::gloo:
      return {};
    case CollectiveLibrary::nccl:
      return kNccl;
    case CollectiveLibrary::rccl:
      return kRccl;
  }
  return {};
}

}  // namespace polyphony
