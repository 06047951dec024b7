// Starts the ranks of a local run as polyphony-worker processes, watches them, and leaves none
// behind.
//   Each gets RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT: what
//   torchrun would set. When one dies the others are given `grace` to say so and leave (they name
//   the lost rank), then killed; who is left after some seconds is told to the user, with what
//   happens next. When one refuses its input, the others are stopped. Ctrl-C and SIGTERM are passed
//   on once (ranks write a checkpoint and stop); a second one kills. Children die with this process,
//   whatever happens to it. What the ranks say on stderr: sim/launching/rank_talk.h.
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
  std::string label = "polyphony";        // of its own lines on stderr
  std::function<std::string()> way_on{};  // after a failure: "--resume continues ..."
  std::function<void()> tick;             // called about five times a second, for progress
};

struct LaunchResult {
  int exit_code =
      0;             // 0, or that of the rank whose end is the cause of the others' (1 when killed)
  std::string what;  // "rank 2 was killed by signal 9 (Killed)"; empty when all ended well, or the
                     // rank itself has said why (exit codes 2 and 3)
  std::string output;        // stdout of rank 0
  bool interrupted = false;  // by Ctrl-C or SIGTERM
};
// Of ranks that gave no answer: why, or that one of them has said it.
NoAnswer no_answer(const LaunchResult& result, const std::string& label);

// The program beside this one. Errors: InputError when it is not there.
std::string find_worker();
LaunchResult launch(const LaunchOptions& options);

}  // namespace polyphony::sim
