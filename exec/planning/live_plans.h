// Live planning: rank 0 plans a step while earlier steps train.
//   planner   a thread of the lowest priority (nice 19, at most one core) looks ahead at the data,
//             at most as far as the ring has slots, and makes plans. Planner dip is
//             told to stop when the time budget of a plan is used up or the step has begun;
//             entrain runs to its end. After a plan that was late it
//             plans for steps one further ahead.
//   decision  a step uses its plan if that exists when rank 0 begins the step. Otherwise the step
//             is late and uses the layout's own schedule and assignment (without_planner()). A
//             separate thread of rank 0 decides, once per step, and tells the other ranks through
//             exec/planning/plan_ring.h. Training does not wait for plans, with two exceptions: the
//             first step of a run waits for one time budget, and replayed plans are waited for.
//   check     up to kProveWhole ranks, the planner's thread verifies a plan's whole Program and
//             checks its memory. A plan that cannot run is replaced like a late one, with the
//             reason; a replayed plan that cannot run is an error.
// An exception on the planner's or the decider's thread ends live planning: on rank 0, open and
// later calls of ask() and finish() throw it. Other ranks are not told: the caller on rank 0 must
// call Transport::abort(), after which they throw LostPeer.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "exec/data/dataset.h"
#include "exec/transport/communicator.h"
#include "shared/step/step_record.h"
#include "shared/units.h"

namespace polyphony::exec {

// Makes the plan of a step. A search calls `stop` often, and ends with the best plan found so far
// when that returns true.
using MakePlan = std::function<StepPlan(std::uint64_t step, const Batch& batch,
                                        const std::function<bool()>& stop)>;

// Whole Programs are checked (verify()) before they run if there are at most this many ranks.
inline constexpr int kProveWhole = 128;

// Returns why a Program needs more memory than is available; empty if it does not.
using TooLarge = std::function<std::string(const Program&)>;

struct LiveOptions {
  Seconds budget{1};                 // time to make one plan
  std::string save;                  // file to which rank 0 writes the plans; empty: none
  std::vector<StepRecord> replayed;  // used in place of planning, if any; on rank 0
  MakePlan make;                     // absent: plan as the layout states
  TooLarge too_large;                // absent: memory is not checked
};

// The run whose steps are planned. All referenced objects must outlive it.
struct PlannedRun {
  const Scenario& scenario;
  const Layout& layout;
  const Plan& plan;
  const Dataset& dataset;
  std::uint64_t first = 0, last = 0;     // the run's steps: [first, last)
  std::uint64_t kept = 0, kept_end = 0;  // steps whose records are kept for record()
};

class LivePlans {
 public:
  // Collective over all ranks. `options` are rank 0's.
  static std::unique_ptr<LivePlans> start(Transport& transport, const PlannedRun& run,
                                          LiveOptions options);
  virtual ~LivePlans() = default;
  // Returns what has been decided for a step, as soon as it has. Call once per step, in order.
  virtual std::future<StepLetter> ask(std::uint64_t step) = 0;
  // Tells the planner that this rank begins a step.
  virtual void begin(std::uint64_t) {}
  // No step follows: a caller that asks for one is told that the run has ended. Call finish() once
  // no more steps are asked for.
  virtual void stop() {}
  virtual void finish() = 0;
  // Returns the record of a step in [kept, kept_end). Collective over all ranks, after finish().
  virtual StepRecord record(std::uint64_t step) = 0;
};

}  // namespace polyphony::exec
