// The algorithms and protocols with which a library can run a collective, one table row per
// algorithm. The fastest one is used (shared/cost/collectives.h).
//
//   time = base + hops.inside · inside + hops.between · between + bytes / (rate · share)
// `bytes` are those that a ring would move over each edge, `rate` is the ring's, and `share` is the
// fraction of that rate that the protocol reaches.
//
// Reduction in the switch (NVLS), inside one domain: a rank sends its array of S bytes once and
// receives 1/n of it, S(1 + 1/n) per link instead of the ring's 2·S(n − 1)/n. The rate is thus the
// ring's times 2(n − 1)/(n + 1), times the profile's in_switch_efficiency (NCCL's tuner: 0.85 on
// Hopper).
//
// Source of NCCL's numbers: NCCL src/graph/tuning.cc for base, hop over NVLink and hop over the
// network. Shares: LL, half of each 8 bytes is a flag; LL128, 120 of 128 bytes are data; Simple,
// all. Trees reach 0.92 of a ring.
//
// Source of RCCL's: ROCm/rccl src/graph/tuning.cc at 0cbce2a, tuning_model_5, which
// src/graph/rome_models.cc selects for eight GPUs that are joined in a full mesh (MI300X): base,
// hwLat and bwRatio of more than two nodes; LL128 is off. A ring's Simple hop over the network is
// that of its tree, 25 us: its own 320 us steers the choice between the two and is no hop's time.
// Not modeled: MSCCL's algorithms, the tuner's corrections by size.
#pragma once

#include <span>

#include "shared/cost/collectives.h"

namespace polyphony {

// Latencies of one protocol, and the share of the rate that it reaches.
struct LibraryProtocol {
  Seconds base, inside, between;  // fixed latency; per hop inside a node; per hop between nodes
  double share;
};
// The number of sequential hops inside nodes (scale-up domains) and between nodes.
struct Hops {
  double inside = 0, between = 0;
};
// One row of the table. The functions depend on the group (ring) and the kind of collective.
struct CollectiveAlgorithm {
  const char* name;
  std::span<const LibraryProtocol> protocols;           // LL, LL128 (NCCL), Simple
  bool (*runs)(const Ring& ring, CollectiveKind kind);  // whether it can run this collective
  Hops (*hops)(const Ring& ring, CollectiveKind kind);
  // Factor of the ring's rate that the algorithm reaches.
  double (*gain)(const Ring& ring) = [](const Ring&) { return 1.0; };
};
// Returns the table of a library; Gloo has none.
std::span<const CollectiveAlgorithm> collective_algorithms(CollectiveLibrary library);

}  // namespace polyphony
