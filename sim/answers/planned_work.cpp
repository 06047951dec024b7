#include "sim/answers/planned_work.h"

#include <cmath>
#include <map>
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

// Of a branch: by lane and microbatch what its compute ops last, those of one tensor- and
// context-parallel rank of each stage.
std::vector<double> seconds_by_microbatch(const Plan& plan, std::size_t branch,
                                          const Prediction& prediction, bool defers) {
  const Program& program = prediction.program;
  const ModuleLayout& grid = plan.branches[branch].grid;
  std::map<std::pair<std::uint32_t, int>, double> seconds;
  for (const OpTime& time : prediction.timeline.ops) {
    const auto* what = std::get_if<Compute>(&program.ops[time.op.value].what);
    if (!what || program.works[what->work.value].branch != branch) continue;
    const Work& work = program.works[what->work.value];
    const int index = static_cast<int>(work.index);
    seconds[{work.lane, defers ? slot_of_work(index) : index}] +=
        (time.end - time.start).count() / (grid.tp * grid.cp);
  }
  std::vector<double> list;
  for (const auto& [key, sum] : seconds) list.push_back(sum);
  return list;
}

}  // namespace

std::vector<PlannedWork::Microbatches> microbatch_work(const Plan& plan,
                                                       const Prediction& unplanned,
                                                       const Prediction& planned) {
  std::vector<PlannedWork::Microbatches> all;
  for (std::size_t b = 0; b < plan.branches.size(); ++b) {
    const bool defers = planned.program.layout.planner == Planning::entrain && b < plan.language;
    const ModuleId module = plan.branches[b].stages.front().chunks.front().module;
    all.push_back({planned.program.model.modules[module.value].name,
                   seconds_by_microbatch(plan, b, unplanned, false),
                   seconds_by_microbatch(plan, b, planned, defers)});
  }
  return all;
}

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
