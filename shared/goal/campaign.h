// The duration and cost of a training run of many steps, failures included.
//   A segment is τ of training, followed by a checkpoint that takes δ. Failures are a Poisson
//   process with a mean of M between them, except during a restart, which takes R; after a failure
//   the segment starts again from its beginning. A segment then takes (M + R)·(exp((τ + δ)/M) − 1)
//   on average, and the best τ solves exp((τ + δ)/M)·(1 − τ/M) = 1, which is close to √(2δM)
//   (Young, CACM 17(9), 1974; Daly, Future Generation Computer Systems 22(3), 2006, also has
//   failures during R: equal to first order in R/M).
// Does not model: failures of storage, spare nodes, checkpoints written in parallel with training
// (for these, δ is the time that the steps lose).
#pragma once

#include "shared/goal/goal.h"

namespace polyphony {

struct Checkpointing {
  Seconds interval{};     // training time between checkpoints; 0: checkpoints cost nothing
  double efficiency = 1;  // training time ÷ elapsed time
};
// Returns the best checkpoint interval. `between` is the mean time between failures of the whole
// run; `write` the time to write one checkpoint (0: checkpoints cost nothing).
Checkpointing best_checkpointing(Seconds between, Seconds write, Seconds restart);

struct Campaign {
  double steps = 0;
  Checkpointing checkpoints;
  Seconds checkpoint{};  // time to write one checkpoint
  Seconds total{};       // elapsed time of the run
  double dollars = 0;    // for all allocated ranks; 0: the cluster has no price
  double days() const { return total.count() / 86400; }
};
// What a campaign depends on besides its goal. Whole nodes are allocated.
struct CampaignOf {
  Seconds step{};
  double tokens_per_step = 0;
  int nodes = 1, ranks_per_node = 1;
  Bytes state{};  // bytes of a checkpoint, all ranks together
  double dollars_per_rank_hour = 0;
};
// Returns the duration and cost of training on goal.tokens tokens, which must be positive.
Campaign campaign(const Goal& goal, const CampaignOf& of);

}  // namespace polyphony
