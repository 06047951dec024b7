// Estimates how much memory a prediction needs on the machine that computes it, before it is
// computed. In closed form from the plan; takes time proportional to the number of stages.
//   ops     compute ops per chunk and microbatch, both ends of every link between ranks, gathers
//           and reductions of sharded parameters, and the end of the step (optimizer)
//   bytes   peak resident memory of the process and of polyphony-simulate, from measured bytes per
//           op, rank and sample (constants in need.cpp). Accurate to a factor of 2.5, mostly too
//           large
// tests/sim/prediction/need_test.cpp checks both; ops to a factor of 1.5.
#pragma once

#include <optional>

#include "shared/error.h"
#include "shared/plan/plan.h"
#include "sim/prediction/predict.h"

namespace polyphony::sim {

struct Need {
  double ops = 0;  // of all data-parallel replicas
  Bytes bytes{};
};

struct NeedOptions {
  Predictor predictor = Predictor::simulate;
  bool trace = false;  // the text of a trace is also produced
  int copies = 1;      // predictions computed at the same time, on several threads
  int lanes = 1;       // the most replicas that one replica represents; above 1 if folded
};

// Steps with more ops than this are folded if possible. Simulating this many ops takes a few
// seconds and about 1 GiB (scripts/bench_simulator: 0.9 to 2.7 million ops per second;
// kBytesPerOp).
inline constexpr double kMostWhole = 1e6;

// Returns the number of ops and the memory. The layout must be accepted by check_layout().
Need need_of(const Scenario& scenario, const Plan& plan, const Layout& layout,
             const NeedOptions& options);
// Plans the layout first.
Need need_of(const Scenario& scenario, const Layout& layout, const NeedOptions& options);

// Returns Infeasible, with the reason and what would need less, if the prediction needs more than
// `memory` (free memory of this machine; zero: unknown, never refused). Also if it has more ops
// than the 32-bit positions of a Program can address.
std::optional<Infeasible> check_need(const PlannedLayout& planned, const NeedOptions& options,
                                     Bytes memory);
// Plans the layout first.
std::optional<Infeasible> check_need(const Scenario& scenario, const Layout& layout,
                                     const NeedOptions& options, Bytes memory);

}  // namespace polyphony::sim
