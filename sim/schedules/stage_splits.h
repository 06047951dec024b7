// Stages made of the pieces of modules (compared_schedules.h), and orders of turns on them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "shared/schedule/schedule.h"
#include "sim/schedules/compared_schedules.h"

namespace polyphony::sim {

// One setting of a schedule: stages on ranks, and their turns; no orders: it cannot be.
struct Arranged {
  StepCosts costs;
  std::vector<Turns> orders;
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
Turn of_branch(Turn turn, std::size_t branch);

Scheme apart_reordered(const StageTimes& times, int ranks);
Scheme beside_each_other(const StageTimes& times, int ranks);
// Whole schedules of the page, one after another.
std::vector<Scheme> schemes(const StageTimes& times, const CompareOptions& options);

}  // namespace polyphony::sim
