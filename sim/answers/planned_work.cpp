#include "sim/answers/planned_work.h"

#include <cmath>
#include <numeric>

#include "shared/plan/planned_step.h"
#include "shared/planner/stable_batch.h"
#include "shared/scenario/typical_batch.h"

namespace polyphony::sim {
namespace {

using entrain::SampleWork;

// Standard deviation over mean.
double spread(const std::vector<SampleWork>& works, double SampleWork::* by) {
  double sum = 0, squares = 0;
  for (const SampleWork& work : works) sum += work.*by;
  if (sum == 0) return 0;
  const auto count = static_cast<double>(works.size());
  for (const SampleWork& work : works) squares += std::pow(work.*by * count / sum - 1, 2);
  return std::sqrt(squares / count);
}

// Work of each branch over batches that no step has, as many seconds as ranks of a pipeline stage.
class FreshBatches {
 public:
  FreshBatches(const Scenario& scenario, const Plan& plan) : scenario_(scenario), plan_(plan) {}

  std::vector<double> operator()(int samples) {
    scenario_.data.global_batch = samples;
    const Batch batch = batch_of_step(scenario_, ++drawn_);
    std::vector<double> works;
    for (const Branch& branch : plan_.branches) {
      works.push_back(0);
      for (const Sample& sample : batch.samples)
        works.back() += sample_work(scenario_.model, branch, sample);
      works.back() *= branch.grid.tp * branch.grid.cp;
    }
    return works;
  }

 private:
  Scenario scenario_;
  const Plan& plan_;
  std::uint64_t drawn_ = 0;
};

}  // namespace

PlannedWork planned_work(const Scenario& scenario, const Layout& layout, const Plan& plan,
                         const Batch& batch) {
  const PlannedWorks works = compare_works(scenario.model, plan, batch);
  const auto compared = [&](double SampleWork::* by) {
    return PlannedWork::Spread{spread(works.before, by), spread(works.after, by)};
  };
  PlannedWork work;
  work.planner = name(layout.planner);
  work.samples = works.samples;
  work.deferred = works.deferred;
  work.encoder = compared(&SampleWork::encoder);
  work.language = compared(&SampleWork::language);
  if (layout.placement != Placement::non_colocated) return work;
  const int replicas = plan.branches[plan.language].grid.dp();
  for (const Branch& branch : plan.branches) work.ranks.push_back(branch.grid.ranks / replicas);
  const int ranks = std::accumulate(work.ranks.begin(), work.ranks.end(), 0);
  if (ranks < static_cast<int>(work.ranks.size())) return work;
  constexpr int kMostSamples = 8192;
  if (const auto stable = minimum_stable_batch(FreshBatches(scenario, plan), ranks, kMostSamples)) {
    work.stable_batch = stable->samples;
    work.stable_ranks = stable->gpus;
  }
  return work;
}

}  // namespace polyphony::sim
