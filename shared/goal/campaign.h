// How long a training run of many steps takes, failures included.
//   Work of length τ, then a checkpoint of length δ; failures arrive as a Poisson process with mean
//   time M between them, at any moment but while restarting (R); after one, the segment is begun
//   anew. A segment then takes (M + R)·(exp((τ + δ)/M) − 1), and the best τ solves
//   exp((τ + δ)/M)·(1 − τ/M) = 1; near it √(2δM) (Young, CACM 17(9), 1974; Daly, Future Generation
//   Computer Systems 22(3), 2006, counts failures in R too: equal to first order in R/M).
// Does not model: failures of storage, spare nodes, checkpoints written beside the work (their δ is
// what the steps lose to them).
#pragma once

#include "shared/goal/goal.h"

namespace polyphony {

struct Checkpointing {
  Seconds interval{};     // of work between checkpoints; 0: they cost nothing
  double efficiency = 1;  // work ÷ time that it takes
};
// `between`: failures of the whole run; `write`: of one checkpoint, > 0 unless it costs nothing.
Checkpointing best_checkpointing(Seconds between, Seconds write, Seconds restart);

struct Campaign {
  double steps = 0;
  Checkpointing checkpoints;
  Seconds checkpoint{};  // to write one
  Seconds total{};
  double dollars = 0;  // of all allocated ranks; 0: the cluster has no price
  double days() const { return total.count() / 86400; }
};
// `ranks` are allocated, whole nodes; `state`: bytes of a checkpoint, of all ranks together.
struct CampaignOf {
  Seconds step{};
  double tokens_per_step = 0;
  int nodes = 1, ranks_per_node = 1;
  Bytes state{};
  double dollars_per_rank_hour = 0;
};
// Needs goal.tokens > 0.
Campaign campaign(const Goal& goal, const CampaignOf& of);

}  // namespace polyphony
