// Stages made of the pieces of modules (compared_schedules.h), and orders of actions on them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "shared/schedule/schedule.h"
#include "sim/schedules/compared_schedules.h"

namespace polyphony::sim {

// One setting of a schedule: stages on ranks, and their actions; no orders: it cannot be.
struct Arranged {
  StepCosts costs;
  std::vector<Actions> orders;
  std::string refusal{};  // why it cannot
};
struct Setting {
  std::string name;
  std::function<Arranged(const StageTimes&)> arrange;
};
struct Scheme {
  std::string name;
  std::vector<Setting> settings;
};

Seconds seconds(const StageCost& cost);  // all of it but its message
// All modules as one: works are microbatches.
ModuleTimes chained(const StageTimes& times);
// The encoders alone so.
ModuleTimes chained_encoders(const StageTimes& times);
// Of a module's pieces as many stages as ranks are named, even by mean seconds of ranks.
BranchCosts split(const ModuleTimes& module, const std::vector<int>& rank_of_stage);

inline constexpr int kMostRounds = 8;  // virtual stages of a rank that are tried
std::string vpp(int rounds);           // "vpp 2"; of one nothing
// Ranks of a pipeline's stages, where its schedule places them, from `first` on.
std::vector<int> placed(const Schedule& row, const Pipeline& pipeline, int first = 0);
// Stages on ranks 0, 1, … in turn, so many rounds.
std::vector<int> rounds_of(int ranks, int rounds);
Action of_branch(Action action, std::size_t branch);
// What the options leave a rank.
void limit(StepCosts& costs, const CompareOptions& options);

// By branch a pipeline on so many ranks of its own, 1F1B, or interleaved in `rounds` the last one, which
// all others feed; those run as far ahead as it asks, and `ahead` microbatches more.
//   slots   by branch, place in the order: works that run one after another
struct ApartBranches {
  std::vector<int> ranks;
  int rounds = 1, ahead = 0;
  std::vector<std::vector<std::vector<int>>> slots;
};
Arranged apart(const StageTimes& times, const ApartBranches& branches);
// Works of each microbatch, in an order of microbatches.
std::vector<std::vector<int>> slots_of(const ModuleTimes& module, const std::vector<int>& order);
// Ways to deal ranks to encoders and the last module, and virtual stages to that one: "3 + 5 ranks, vpp 2".
struct ApartDeal {
  std::string name;
  int encoder_ranks = 0, ranks = 0, rounds = 1;
};
std::vector<ApartDeal> apart_deals(const StageTimes& times, int ranks);

Scheme apart_reordered(const StageTimes& times, int ranks);
Scheme entrain_deals(const StageTimes& times, int ranks);
Scheme beside_each_other(const StageTimes& times, int ranks);
Scheme dip(const StageTimes& times, const CompareOptions& options);
// Orders searched on stages of others, starting from theirs.
inline constexpr const char* kSearched = "searched";
Scheme searched(const std::vector<std::pair<std::string, const Setting*>>& from,
                const CompareOptions& options);
// Whole schedules of the page, one after another.
std::vector<Scheme> schemes(const StageTimes& times, const CompareOptions& options);

}  // namespace polyphony::sim
