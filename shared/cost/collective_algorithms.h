// In which ways NCCL may run a collective, one row each; the quickest is taken
// (shared/cost/collectives.h).
//   time = base + hops inside · inside + hops between · between + bytes over an edge / (rate · share)
//   `share`: of the ring's rate, of the bytes that a ring would move.
//   Reduction in the switch (NVLS): a rank sends its array once and takes n-th parts, S(1 + 1/n) a
//   link in place of the ring's 2·S(n − 1)/n: the ring's rate times 2(n − 1)/(n + 1), of which the
//   profile's in_switch_efficiency is reached (NCCL's tuner: 0.85 on Hopper). Inside one domain.
// Source: NCCL src/graph/tuning.cc: base, hop over NVLink, hop over the network; shares: LL, half of
// each 8 bytes is a flag; LL128, 120 of 128 bytes are data; Simple, all. Trees reach 0.92 of a ring.
#pragma once

#include <span>

#include "shared/cost/collectives.h"

namespace polyphony {

struct NcclProtocol {
  Seconds base, inside, between;
  double share;
};
// One after another: inside a node (a scale-up domain), and from node to node.
struct Hops {
  double inside = 0, between = 0;
};
struct CollectiveAlgorithm {
  const char* name;
  std::span<const NcclProtocol> protocols;  // LL, LL128, Simple
  bool (*runs)(const Ring& ring, CollectiveKind kind);
  Hops (*hops)(const Ring& ring, CollectiveKind kind);
  double (*gain)(const Ring& ring) = [](const Ring&) { return 1.0; };  // of the ring's rate
};
std::span<const CollectiveAlgorithm> collective_algorithms();

}  // namespace polyphony
