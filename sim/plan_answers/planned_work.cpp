#include "sim/plan_answers/planned_work.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "shared/planner/stable_batch.h"
#include "shared/scenario/typical_batch.h"
#include "shared/step/planned_step.h"

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

// Returns the work of each branch for a random batch of a given size, in rank-seconds: seconds
// times the tensor- and context-parallel ranks. The batches differ from those of the run.
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

// Returns the compute time in seconds of each microbatch of a branch, by replica: the sum over
// stages, each counted for one tensor- and context-parallel rank. `places` selects how microbatches
// are identified and ordered: by number, by the number of the original microbatch of a deferred one
// (slots), or in execution order.
enum class Places : std::uint8_t { works, slots, as_run };
std::vector<double> seconds_by_microbatch(const Plan& plan, std::size_t branch,
                                          const Prediction& prediction, Places places) {
  struct Microbatch {
    double seconds = 0, start = std::numeric_limits<double>::infinity();
  };
  const Program& program = prediction.program;
  const ModuleLayout& grid = plan.branches[branch].grid;
  std::map<std::pair<std::uint32_t, int>, Microbatch> by_place;
  const auto place = [&](const Work& work) -> Microbatch& {
    const int index = static_cast<int>(work.index);
    return by_place[{work.lane, places == Places::slots ? slot_of_work(index) : index}];
  };
  for (const Work& work : program.works)
    if (work.branch == branch) place(work);  // includes microbatches without items
  for (const OpTime& time : prediction.timeline.ops) {
    const auto* what = std::get_if<Compute>(&program.ops[time.op.value].what);
    if (!what || program.works[what->work.value].branch != branch) continue;
    Microbatch& of = place(program.works[what->work.value]);
    of.seconds += (time.end - time.start).count() / (grid.tp * grid.cp);
    of.start = std::min(of.start, time.start.count());
  }
  std::vector<std::pair<std::uint32_t, Microbatch>> found;
  for (const auto& [key, microbatch] : by_place) found.emplace_back(key.first, microbatch);
  if (places == Places::as_run)
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first, a.second.start) < std::pair(b.first, b.second.start);
    });
  std::vector<double> list;
  for (const auto& [lane, microbatch] : found) list.push_back(microbatch.seconds);
  return list;
}

}  // namespace

std::vector<MicrobatchWork> microbatch_work(const Plan& plan, const Prediction& unplanned,
                                            const Prediction& planned) {
  std::vector<MicrobatchWork> all;
  const bool searched = planned.program.layout.planner == Planning::dip;
  for (std::size_t b = 0; b < plan.branches.size(); ++b) {
    const ModuleId module = plan.branches[b].stages.front().chunks.front().module;
    const Places places = searched            ? Places::as_run
                          : b < plan.language ? Places::slots
                                              : Places::works;
    all.push_back({planned.program.model.modules[module.value].name,
                   seconds_by_microbatch(plan, b, unplanned, Places::works),
                   seconds_by_microbatch(plan, b, planned, places)});
  }
  return all;
}

PlannedWork planned_work(const Scenario& scenario, const Layout& layout, const Plan& plan,
                         const Batch& batch) {
  const PlannedWorks works = compare_works(scenario.model, plan, batch, layout.deferral);
  const auto compared = [&](double SampleWork::* by) {
    std::vector<double> samples;
    for (const SampleWork& sample : works.of_samples) samples.push_back(sample.*by);
    return PlannedWork::Spread{
        spread(works.before, by), spread(works.after, by),
        entrain::least_spread(std::move(samples), static_cast<int>(works.after.size()))};
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
