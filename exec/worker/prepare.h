// All that has to be right before the ranks of a run meet: the scenario, its layout, the number of
// ranks, the data, the memory. Every rank comes to the same answer, so that a refusal is no lost
// rank.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "exec/data/dataset.h"
#include "exec/system/launch_env.h"
#include "shared/error.h"
#include "shared/scenario/scenario_json.h"

namespace polyphony::exec {

struct Prepared {
  // With the samples of its data set; its layout is legal, runnable, of as many ranks as started.
  Scenario scenario;
  std::unique_ptr<Dataset> dataset;
};

// `data_path`: of downloaded data sets. `memory`: what a rank can have. The Program of the first
// batch must fit, its buffers in the order of the estimate (shared/cost/cost.h) with the scenario's
// profile: what `polyphony simulate --estimate` says of that batch. `checkpoints`: folder of those
// that are continued; empty: none. Errors: InputError. Infeasible: right, but this program or
// machine cannot run it.
std::variant<Prepared, Infeasible> prepare(const std::string& file, const LoadText& load,
                                           const LaunchEnv& launch, const std::string& data_path,
                                           Bytes memory, const std::string& checkpoints = "");

}  // namespace polyphony::exec
