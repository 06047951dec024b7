#include "sim/schedules/stage_splits.h"

#include <algorithm>
#include <numeric>

#include "shared/plan/partition.h"

namespace polyphony::sim {
namespace {

StageCost sum(StageCost a, const StageCost& b) {
  a.forward += b.forward;
  a.input += b.input;
  a.weight += b.weight;
  a.kept += b.kept;
  a.message = b.message;
  return a;
}
ModuleTimes chain_of(const StageTimes& times, std::size_t modules) {
  ModuleTimes chain{"", 0, {}, {}};
  chain.microbatch_of.resize(static_cast<std::size_t>(times.microbatches));
  std::iota(chain.microbatch_of.begin(), chain.microbatch_of.end(), 0);
  for (std::size_t i = 0; i < modules; ++i) {
    const ModuleTimes& module = times.modules[i];
    chain.name += (i > 0 ? "+" : "") + module.name;
    for (int piece = 0; piece < module.pieces; ++piece, ++chain.pieces) {
      std::vector<StageCost> row(chain.microbatch_of.size());
      for (std::size_t w = 0; w < module.microbatch_of.size(); ++w) {
        StageCost& of = row[static_cast<std::size_t>(module.microbatch_of[w])];
        const Seconds before = of.message;
        of = sum(of, module.cost(piece, static_cast<int>(w)));
        of.message += before;  // its parts go one after another
      }
      chain.costs.insert(chain.costs.end(), row.begin(), row.end());
    }
  }
  return chain;
}

}  // namespace

Seconds seconds(const StageCost& cost) { return cost.forward + cost.input + cost.weight; }

ModuleTimes chained(const StageTimes& times) { return chain_of(times, times.modules.size()); }
ModuleTimes chained_encoders(const StageTimes& times) {
  return chain_of(times, times.modules.size() - 1);
}

BranchCosts split(const ModuleTimes& module, const std::vector<int>& rank_of_stage) {
  BranchCosts branch{module.name, rank_of_stage, module.microbatch_of, {}};
  Chain chain;
  const int works = branch.works();
  for (int piece = 0; piece < module.pieces; ++piece) {
    double all = 0;
    for (int w = 0; w < works; ++w) all += seconds(module.cost(piece, w)).count();
    chain.costs.push_back(all);
  }
  std::vector<int> from_zero = rank_of_stage;
  const int first = *std::min_element(from_zero.begin(), from_zero.end());
  for (int& rank : from_zero) rank -= first;
  int piece = 0;
  for (const int size : partition_ranks(chain, from_zero)) {
    for (int w = 0; w < works; ++w) {
      StageCost stage;
      for (int i = 0; i < size; ++i) stage = sum(stage, module.cost(piece + i, w));
      branch.costs.push_back(stage);
    }
    piece += size;
  }
  return branch;
}

std::string vpp(int rounds) { return rounds == 1 ? "" : "vpp " + std::to_string(rounds); }

std::vector<int> placed(const Schedule& row, const Pipeline& pipeline, int first) {
  std::vector<int> ranks;
  for (int s = 0; s < pipeline.stages(); ++s) ranks.push_back(first + row.place(pipeline, s));
  return ranks;
}

std::vector<int> rounds_of(int ranks, int rounds) {
  std::vector<int> result;
  for (int s = 0; s < ranks * rounds; ++s) result.push_back(s % ranks);
  return result;
}

void limit(StepCosts& costs, const CompareOptions& options) {
  if (options.memory) costs.capacity.assign(static_cast<std::size_t>(costs.ranks), *options.memory);
}

Action of_branch(Action action, std::size_t branch) {
  action.branch = static_cast<std::uint16_t>(branch);
  return action;
}

}  // namespace polyphony::sim
