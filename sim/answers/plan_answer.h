// What a scenario's layout means, without predicting anything: modules, stages on ranks, the
// Program of one step, verified.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"

namespace polyphony::sim {

struct PlannedModule {
  std::string name, kind, trainable;
  std::int64_t parameters = 0;
};
struct PlannedStage {
  int stage = 0;  // of its branch
  std::string ranks, grid, layers;
  std::int64_t parameters_per_rank = 0;
};
struct PlannedProgram {
  std::uint32_t ranks = 0;
  std::size_t ops = 0, messages = 0;
  std::uint64_t hash = 0;
};

struct PlanAnswer {
  std::vector<PlannedModule> modules;
  // Of the layout, where there is one.
  std::string layout;
  std::vector<PlannedStage> stages;
  std::optional<PlannedProgram> program;
  std::string simulation_only;  // why the executor cannot run it; empty: it can
};

// The profile splits the stages that the layout does not. Errors: InputError for an illegal layout.
PlanAnswer answer_plan(const Scenario& scenario, const HardwareProfile& profile);

}  // namespace polyphony::sim
