// What a prediction costs the machine that makes it, before it is made: from the plan alone, in
// closed form, in the time of its stages.
//   ops     compute ops chunk by chunk and work item, both ends of every link that crosses ranks,
//           gathers and sums of sharded parameters, the step's tail
//   bytes   resident at most, of the process and its simulating child: so many an op, a rank and a
//           sample as measured (constants in need.cpp). Good to a factor of 2.5, mostly too much
// tests/sim/prediction/need_test.cpp holds both; ops to a factor of 1.5.
#pragma once

#include <optional>

#include "shared/error.h"
#include "shared/plan/plan.h"
#include "sim/prediction/predict.h"

namespace polyphony::sim {

struct Need {
  double ops = 0;  // of all lanes
  Bytes bytes{};
};

struct NeedOptions {
  Predictor predictor = Predictor::simulate;
  bool trace = false;  // its text as well
  int copies = 1;      // at the same time: worker processes
  int lanes = 1;       // that each one of the answer stands for, at most: more where it is folded
};

// Steps of more ops are folded where they may be: played whole, this many take some seconds and about a GiB
// (scripts/bench_simulator: 0.9 to 2.7 million a second; kBytesPerOp).
inline constexpr double kMostWhole = 1e6;

// Needs a layout that check_layout() accepts.
Need need_of(const Scenario& scenario, const Layout& layout, const NeedOptions& options);

// Why it is not to be tried with `memory` free, and what would need less; zero: not known, nothing
// is refused. Also when a Program's 32-bit positions would not do.
std::optional<Infeasible> check_need(const Scenario& scenario, const Layout& layout,
                                     const NeedOptions& options, Bytes memory);

}  // namespace polyphony::sim
