// Entrain (shared/planner/entrain.h) over parts of microbatches. A sample is one part: all
// encoders' times for it, and an equal share of its microbatch's time in the last module. A
// microbatch without parts is one sample.
//
// Samples are reassigned to microbatches; encoders have ranks of their own. Deferred samples belong
// to the next microbatch, and the encoders process them with the current one.
#include "shared/planner/entrain.h"

#include <algorithm>

#include "sim/schedules/stage_splits.h"

namespace polyphony::sim {
namespace {

struct Sample {
  std::vector<StageCost> encoders, last;  // by piece
};

StageCost share(StageCost cost, int of) {
  cost.forward /= of, cost.input /= of, cost.weight /= of, cost.message /= of;
  cost.kept.value /= of;
  return cost;
}
void add(std::vector<StageCost>& sums, const std::vector<StageCost>& costs) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i].forward += costs[i].forward, sums[i].input += costs[i].input;
    sums[i].weight += costs[i].weight, sums[i].message += costs[i].message;
    sums[i].kept += costs[i].kept;
  }
}

std::vector<Sample> samples_of(const StageTimes& times) {
  std::vector<Sample> samples;
  const ModuleTimes& last = times.modules.back();
  for (int k = 0; k < times.microbatches; ++k) {
    std::vector<std::pair<int, int>> works;  // by encoder: [begin, end)
    int parts = 1;
    for (std::size_t m = 0; m + 1 < times.modules.size(); ++m) {
      const std::vector<int>& of = times.modules[m].microbatch_of;
      const auto [begin, end] = std::equal_range(of.begin(), of.end(), k);
      works.emplace_back(begin - of.begin(), end - of.begin());
      parts = std::max(parts, works.back().second - works.back().first);
    }
    for (int part = 0; part < parts; ++part) {
      Sample& sample = samples.emplace_back();
      for (std::size_t m = 0; m < works.size(); ++m)
        for (int piece = 0; piece < times.modules[m].pieces; ++piece) {
          const int work = works[m].first + part;
          sample.encoders.push_back(work < works[m].second ? times.modules[m].cost(piece, work)
                                                           : StageCost{});
        }
      for (int piece = 0; piece < last.pieces; ++piece)
        sample.last.push_back(share(last.cost(piece, k), parts));
    }
  }
  return samples;
}

// Builds a module, one work at a time.
class ModuleBuilder {
 public:
  ModuleBuilder(std::string name, int pieces) : module_{std::move(name), pieces, {}, {}} {}
  void add_work(int microbatch, const std::vector<Sample>& samples, const entrain::Positions& of,
                std::vector<StageCost> Sample::* part) {
    std::vector<StageCost> sums(static_cast<std::size_t>(module_.pieces));
    for (const int s : of) add(sums, samples[static_cast<std::size_t>(s)].*part);
    module_.microbatch_of.push_back(microbatch);
    by_work_.push_back(std::move(sums));
  }
  int count() const { return static_cast<int>(by_work_.size()); }
  ModuleTimes take() {
    for (std::size_t piece = 0; piece < static_cast<std::size_t>(module_.pieces); ++piece)
      for (const auto& sums : by_work_) module_.costs.push_back(sums[piece]);
    return std::move(module_);
  }

 private:
  ModuleTimes module_;
  std::vector<std::vector<StageCost>> by_work_;
};

Arranged reassigned(const StageTimes& times, const RankAssignment& assignment) {
  const std::vector<Sample> samples = samples_of(times);
  std::vector<entrain::SampleWork> works;
  for (const Sample& sample : samples) {
    entrain::SampleWork& work = works.emplace_back();
    for (const StageCost& cost : sample.encoders) work.encoder += seconds(cost).count();
    for (const StageCost& cost : sample.last) work.language += seconds(cost).count();
  }
  const std::vector<entrain::Slot> planned = entrain::plan_replica(works, times.microbatches);
  const ModuleTimes encoders = chained_encoders(times);
  ModuleBuilder first(encoders.name, encoders.pieces);
  ModuleBuilder last(times.modules.back().name, times.modules.back().pieces);
  SeparateBranches branches{
      {assignment.encoder_ranks, assignment.ranks}, assignment.rounds, 0, {{}, {}}};
  for (int k = 0; k < times.microbatches; ++k) {
    const entrain::Slot& slot = planned[static_cast<std::size_t>(k)];
    std::vector<int>& together = branches.slots[0].emplace_back();
    together.push_back(first.count());
    first.add_work(k, samples, slot.kept, &Sample::encoders);
    if (!slot.deferred.empty()) {
      together.push_back(first.count());
      first.add_work(k + 1, samples, slot.deferred, &Sample::encoders);
      branches.ahead = 1;
    }
    entrain::Positions here = slot.kept;
    if (k > 0) {
      const entrain::Positions& late = planned[static_cast<std::size_t>(k) - 1].deferred;
      here.insert(here.end(), late.begin(), late.end());
    }
    branches.slots[1].push_back({k});
    last.add_work(k, samples, here, &Sample::last);
  }
  return non_colocated({times.microbatches, {first.take(), last.take()}}, branches);
}

}  // namespace

Scheme entrain_scheme(const StageTimes& times, int ranks) {
  Scheme scheme{"entrain", {}};
  for (const RankAssignment& assignment : rank_assignments(times, ranks))
    scheme.settings.push_back({assignment.name, [assignment](const StageTimes& of) {
                                 return reassigned(of, assignment);
                               }});
  return scheme;
}

}  // namespace polyphony::sim
