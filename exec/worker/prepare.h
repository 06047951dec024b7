// All that has to be right before the ranks of a run meet: the scenario, its layout, the number of
// ranks, the data, the memory. Every rank comes to the same answer, so that a refusal is no lost
// rank.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "exec/data/dataset.h"
#include "exec/system/launch_env.h"
#include "shared/error.h"
#include "shared/graph/memory.h"
#include "shared/hardware/hardware.h"
#include "shared/program/program.h"
#include "shared/scenario_io/scenario_json.h"

namespace polyphony::exec {

// What this machine has for each rank, and how a Program's need is foreseen: its buffers in the order of the
// estimate (shared/cost/cost.h) with the scenario's profile.
struct RankRoom {
  Cluster cluster;
  HardwareProfile profile;
  Bytes memory{};
  // What each rank needs while a step runs.
  std::vector<RankMemory> need_of(const Program& program) const;
  // Which stage needs more, and how much there is; empty: none does.
  std::string too_small_for(const Program& program) const;
  std::string too_small_for(const Program& program, const std::vector<RankMemory>& need) const;
};

struct Prepared {
  // With the samples of its data set; its layout is legal, runnable, of as many ranks as started.
  Scenario scenario;
  std::unique_ptr<Dataset> dataset;
  RankRoom room;
  std::vector<RankMemory> need;  // by rank, of the first batch
};

// `data_path`: of downloaded data sets. `memory`: what a rank can have. The Program of the first
// batch must fit: what `polyphony simulate --estimate` says of that batch. `checkpoints`: folder of those
// that are continued; empty: none. Errors: InputError. Infeasible: right, but this program or
// machine cannot run it.
std::variant<Prepared, Infeasible> prepare(const std::string& file, const LoadText& load,
                                           const LaunchEnv& launch, const std::string& data_path,
                                           Bytes memory, const std::string& checkpoints = "");

// Of a run that is planned while it trains: what it takes where a plan comes too late must fit, too.
std::optional<Infeasible> check_late_plan(const Prepared& prepared, const std::string& file);

}  // namespace polyphony::exec
