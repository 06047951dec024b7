// Steps are planned on rank 0 while those before them train.
//   planner   a thread of the lowest priority (nice 19, one core at most)
//             looks ahead at the data, up to the ring's slots, and makes plans. It is told to stop when
//             its time for a plan is over or the step has begun; after a plan that came too late it
//             aims one step further ahead.
//   decision  a step takes the plan that is there when rank 0 begins it; else it is late, and takes the
//             layout's own schedule and assignment (without_planner()). Another thread of rank 0
//             decides, once, and tells the others through exec/planning/plan_ring.h. Training never
//             waits; but the first step of a run, which nothing hides, waits for a plan's time, and
//             replayed plans are waited for.
//   proof     up to kProveWhole ranks a plan's whole Program is verified, and looked at for memory, on the
//             planner's thread: one that cannot run gives way as a late one does, and says why; a replayed
//             one is refused.
//   What making a plan throws is thrown to who asks for the step.
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

// `stop`, asked often, says when to end with what there is.
using MakePlan = std::function<StepPlan(std::uint64_t step, const Batch& batch,
                                        const std::function<bool()>& stop)>;

// Up to so many ranks, whole Programs are proven before they run (verify()).
inline constexpr int kProveWhole = 128;

// Why a Program needs more memory than there is; empty: it does not.
using TooLarge = std::function<std::string(const Program&)>;

struct LiveOptions {
  Seconds budget{1};                 // for a plan
  std::string save;                  // file of plans that is written on rank 0; empty: none
  std::vector<StepRecord> replayed;  // in place of planning, if any; on rank 0
  MakePlan make;                     // absent: what the layout says
  TooLarge too_large;                // absent: memory is not looked at
};

// What a run's plans are for. All must outlive it.
struct PlannedRun {
  const Scenario& scenario;
  const Layout& layout;
  const Plan& plan;
  const Dataset& dataset;
  std::uint64_t first = 0, last = 0;     // its steps: [first, last)
  std::uint64_t kept = 0, kept_end = 0;  // whose records are asked for when it is over
};

class LivePlans {
 public:
  // Of all ranks. `options` are rank 0's.
  static std::unique_ptr<LivePlans> start(Transport& transport, const PlannedRun& run,
                                          LiveOptions options);
  virtual ~LivePlans() = default;
  // What has been decided of a step, as soon as it is. Each once, in their order.
  virtual std::future<StepLetter> ask(std::uint64_t step) = 0;
  // This rank begins a step.
  virtual void begin(std::uint64_t) {}
  // No step follows: who asks for one is told the end. Then, when nobody asks any more, finish().
  virtual void stop() {}
  virtual void finish() = 0;
  // After finish(), of all ranks: one of PlannedRun::kept.
  virtual StepRecord record(std::uint64_t step) = 0;
};

}  // namespace polyphony::exec
