// One training run on ranks of this machine, of a scenario or of one of its phases: what is checked
// before its ranks start, and the run.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "shared/files/run_folder.h"
#include "sim/cli/command.h"
#include "sim/launching/launch.h"

namespace polyphony::sim {

struct LocalRun {
  Scenario scenario{};  // prepare_run() reads its samples
  std::int64_t steps = 0;
  std::string out{};  // folder of the run
  EarlierRun earlier = EarlierRun::refuse;
  std::string weights_from{};  // folder of the run with whose parameters it begins; empty: none
  // Set by prepare_run().
  HardwareProfile profile{};
  Layout layout{};
  std::optional<Seconds> predicted{};  // time of a step; absent: it cannot be predicted here
};

// Reads the samples, chooses the layout and checks that this machine can train it. Prints what is
// chosen and assumed. Throws InputError or NoAnswer before any rank starts.
void prepare_run(const Arguments& args, LocalRun& run);

struct TrainedRun {
  LaunchResult result;
  nlohmann::json summary;  // of rank 0 (exec/worker)
  bool ended() const { return result.exit_code == 0 && !result.interrupted; }
};
// Starts the ranks of a prepared run and waits for them. Throws NoAnswer if they give no summary.
TrainedRun train_run(const Arguments& args, const LocalRun& run);

// Returns the answer as --format json and as text have it.
nlohmann::json run_json(const LocalRun& run, const TrainedRun& trained);
std::string run_text(const LocalRun& run, const TrainedRun& trained);

}  // namespace polyphony::sim
