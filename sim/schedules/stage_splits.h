// Stages made from the pieces of modules (compared_schedules.h), and orders of actions on them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "shared/schedule/schedule.h"
#include "sim/schedules/compared_schedules.h"

namespace polyphony::sim {

// One setting of a schedule, applied: stages on ranks, and the ranks' actions. No orders: it cannot
// run.
struct Arranged {
  StepCosts costs;
  std::vector<Actions> orders;
  std::string refusal{};  // why it cannot run
};
struct ScheduleSetting {
  std::string name;
  std::function<Arranged(const StageTimes&)> arrange;
};
// A schedule with the settings to try.
struct Scheme {
  std::string name;
  std::vector<ScheduleSetting> settings;
};

Seconds seconds(const StageCost& cost);  // forward and backward, without the message
// Returns all modules concatenated to one, in which each work is a whole microbatch.
ModuleTimes chained(const StageTimes& times);
// As above, for the encoders only.
ModuleTimes chained_encoders(const StageTimes& times);
// Splits a module's pieces into one stage per entry of `rank_of_stage`, balanced by the mean
// seconds per rank.
BranchCosts split(const ModuleTimes& module, const std::vector<int>& rank_of_stage);

inline constexpr int kMostRounds = 8;  // most virtual stages per rank that are tried
std::string vpp(int rounds);           // "vpp 2"; empty for 1
// Returns the ranks of a pipeline's stages as its schedule places them, starting at rank `first`.
std::vector<int> placed(const Schedule& row, const Pipeline& pipeline, int first = 0);
// Returns ranks 0, 1, … repeated `rounds` times.
std::vector<int> rounds_of(int ranks, int rounds);
Action of_branch(Action action, std::size_t branch);
// Sets the memory limit of each rank, if the options have one.
void limit(StepCosts& costs, const CompareOptions& options);

// One pipeline per branch, each on ranks of its own: 1F1B, except that the last branch, which all
// others feed, is interleaved if it has several `rounds`. The other branches run as far ahead as
// the last one needs, plus `ahead` microbatches.
//   slots   by branch and position in the order: works that run one after another
struct SeparateBranches {
  std::vector<int> ranks;
  int rounds = 1, ahead = 0;
  std::vector<std::vector<std::vector<int>>> slots;
};
Arranged non_colocated(const StageTimes& times, const SeparateBranches& branches);
// Returns the works of each microbatch, for microbatches in the given order.
std::vector<std::vector<int>> slots_of(const ModuleTimes& module, const std::vector<int>& order);
// The ways to assign ranks to the encoders and to the last module, and virtual stages to the
// latter: "3 + 5 ranks, vpp 2".
struct RankAssignment {
  std::string name;
  int encoder_ranks = 0, ranks = 0, rounds = 1;
};
std::vector<RankAssignment> rank_assignments(const StageTimes& times, int ranks);

Scheme non_colocated_reordered(const StageTimes& times, int ranks);
Scheme entrain_scheme(const StageTimes& times, int ranks);
Scheme modality_parallel(const StageTimes& times, int ranks);
Scheme dip(const StageTimes& times, const CompareOptions& options);
// Searches orders on the stages of other schedules, starting from their orders.
inline constexpr const char* kSearched = "searched";
Scheme searched(const std::vector<std::pair<std::string, const ScheduleSetting*>>& from,
                const CompareOptions& options);
// Returns all schedules to compare, except the searched one.
std::vector<Scheme> schemes(const StageTimes& times, const CompareOptions& options);

}  // namespace polyphony::sim
