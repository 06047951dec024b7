// Everything that must be checked before the ranks of a run connect: the scenario, its layout, the
// number of ranks, the data, the memory. Every rank reaches the same result, so that an error does
// not look like a lost rank to its peers.
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
#include "shared/plan/plan.h"
#include "shared/program/program.h"
#include "shared/scenario_io/scenario_json.h"

namespace polyphony::exec {

// The memory that this machine has for each rank, and the prediction of a Program's need: its
// buffers in the order of the estimate (shared/cost/cost.h) with the scenario's profile.
struct RankRoom {
  Cluster cluster;
  HardwareProfile profile;
  Bytes memory{};
  // Returns what each rank needs while a step runs, libraries of a GPU included.
  std::vector<RankMemory> need_of(const Program& program) const;
  // Returns which stage needs more memory than there is, and how much there is; empty if all fit.
  std::string too_small_for(const Program& program) const;
  std::string too_small_for(const Program& program, const std::vector<RankMemory>& need) const;
};

struct Prepared {
  // Includes the samples of its data set. Its layout is legal, runnable, and for as many ranks as
  // were started.
  Scenario scenario;
  std::unique_ptr<Dataset> dataset;
  Plan plan;  // of the layout, made once for the whole run
  RankRoom room;
  std::vector<RankMemory> need;  // by rank, for the first batch
};

// Reads and checks a run's scenario. Throws InputError if the input is wrong; returns Infeasible if
// it is right, but this program or machine cannot run it. The Program of the first batch must fit
// in memory, by the prediction of `polyphony simulate --estimate` for that batch.
// `data_path`: folder of downloaded data sets. `memory`: available to each rank. `checkpoints`:
// folder of the checkpoints that the run resumes from; empty: none. `phase`: which of the file's
// phases is run; empty: it has none.
std::variant<Prepared, Infeasible> prepare(const std::string& file, const LoadText& load,
                                           const LaunchEnv& launch, const std::string& data_path,
                                           Bytes memory, const std::string& checkpoints = "",
                                           const std::string& phase = "");

// Checks a run that is planned live: the schedule used for steps whose plan is late must fit in
// memory, too.
std::optional<Infeasible> check_late_plan(const Prepared& prepared, const std::string& file);

}  // namespace polyphony::exec
