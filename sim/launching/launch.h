// Starts the ranks of a local run as polyphony-worker processes, waits for them, and leaves none
// running.
//   Each rank gets RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as
//   torchrun sets them. When a rank dies, the others have `grace` seconds to report the lost rank
//   and exit, then they are killed; ranks that are still running after some seconds are listed on
//   stderr with what happens next. When a rank refuses its input, the others are stopped. Ctrl-C
//   and SIGTERM are passed on once (ranks write a checkpoint and stop); a second one kills.
//   Children die with this process. What ranks print on stderr: sim/launching/rank_talk.h.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shared/units.h"
#include "sim/console/failure.h"
#include "sim/launching/rank_process.h"

namespace polyphony::sim {

struct LaunchOptions {
  RankCommand command;
  Seconds grace{30};
  std::string label = "polyphony";        // begins the launcher's own lines on stderr
  std::function<std::string()> way_on{};  // after a failure: "--resume continues ..."
  std::function<void()> tick;             // called about five times a second, for progress
};

struct LaunchResult {
  int exit_code =
      0;             // 0, or that of the rank whose end is the cause of the others' (1 when killed)
  std::string what;  // "rank 2 was killed by signal 9 (Killed)"; empty when all ended well, or when
                     // the rank itself reported why (exit codes 2 and 3)
  std::string output;        // stdout of rank 0
  bool interrupted = false;  // by Ctrl-C or SIGTERM
};
// The error of ranks that gave no answer: why, or that one of them has reported it.
NoAnswer no_answer(const LaunchResult& result, const std::string& label);

// Returns the path of polyphony-worker, in the folder of this program. Throws InputError if it is
// missing.
std::string find_worker();
LaunchResult launch(const LaunchOptions& options);

}  // namespace polyphony::sim
