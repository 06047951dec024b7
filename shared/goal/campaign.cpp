#include "shared/goal/campaign.h"

#include <cmath>

#include "shared/error.h"

namespace polyphony {

Checkpointing best_checkpointing(Seconds between, Seconds write, Seconds restart) {
  const double mean = between.count(), cost = write.count();
  if (!(cost > 0)) return {Seconds(0), 1 / (1 + restart.count() / mean)};
  // With x = τ/M, (exp((τ + δ)/M) − 1)/τ is smallest where x − 1 = −exp(−x − δ/M), which has one
  // root between 0 and 1. Both sides increase with x.
  double low = 0, high = 1;
  for (int i = 0; i < 100; ++i) {
    const double x = (low + high) / 2;
    (1 - x < std::exp(-x - cost / mean) ? high : low) = x;
  }
  const double work = high * mean;
  const double takes = (mean + restart.count()) * std::expm1((work + cost) / mean);
  return {Seconds(work), work / takes};
}

Campaign campaign(const Goal& goal, const CampaignOf& of) {
  POLYPHONY_CHECK(goal.tokens > 0 && of.tokens_per_step > 0,
                  "a campaign needs goal.tokens and tokens_per_step > 0");
  Campaign result;
  result.steps = std::ceil(goal.tokens / of.tokens_per_step);
  const int ranks = of.nodes * of.ranks_per_node;
  result.checkpoint = Seconds(static_cast<double>(of.state.value) /
                              (goal.failures.checkpoint_rate.value * of.nodes));
  result.checkpoints =
      best_checkpointing(goal.failures.every / ranks, result.checkpoint, goal.failures.restart);
  result.total = of.step * result.steps / result.checkpoints.efficiency;
  result.dollars = of.dollars_per_rank_hour * ranks * result.total.count() / 3600;
  return result;
}

}  // namespace polyphony
