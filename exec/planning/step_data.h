// What one rank needs for one step: the Program of its batch and the inputs of the microbatches
// that the rank runs. It is prepared on a separate thread while the previous step trains.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>

#include "exec/data/dataset.h"
#include "exec/device/own_stream.h"
#include "exec/planning/live_plans.h"
#include "exec/transport/communicator.h"
#include "shared/lower/lower.h"
#include "shared/step/step_part.h"

namespace polyphony::exec {

// Which rank plans a step.
//   each   every rank makes the whole plan and keeps its own part
//   first  rank 0 plans for all and posts each rank its part (Transport::post), so the cost on the
//          other ranks does not grow with the number of ranks
//   live   rank 0, while earlier steps train (exec/planning/live_plans.h). Steps whose plan is
//          late, and evaluations, are planned as with `each`, without the layout's planner
enum class Planner : std::uint8_t { each, first, live };

// A step of all ranks.
struct WholeStep {
  Program program;
  std::optional<StepRecord> live;  // if it was planned live
};

class StepPlanner {
 public:
  // All arguments must outlive the object.
  StepPlanner(Transport& transport, const Scenario& scenario, const Layout& layout,
              const Plan& plan, const Dataset& dataset, Planner planner);

  // Start, drive and end live planning. Collective over all ranks; without live planning they do
  // nothing.
  void go_live(const PlannedRun& run, LiveOptions options);
  void begin(std::uint64_t step) const;
  void stop() const;
  void finish() const;

  // Null unless the run is planned live.
  LivePlans* live() const { return live_.get(); }
  // Returns this rank's part of a step. If rank 0 plans, every rank must ask for every step once.
  // Not for live planning, which uses live()->ask().
  StepPart part(std::uint64_t step) const;
  Program lower(const StepPart& part) const;
  // Like part() and lower(), but always planned on this rank, whatever the Planner.
  StepPart own_part(const Batch& batch) const;
  Program lower_own(const StepPart& part, StepKind kind = StepKind::train) const;
  // Returns the Program of all ranks. Its op ids are those in traces, and verify() checks it. In a
  // live run it is planned like own_part().
  Program whole(const Batch& batch) const;
  // Returns a step that has been trained. Collective over all ranks, in the same order.
  WholeStep whole_of(std::uint64_t step) const;

 private:
  Transport& transport_;
  const Scenario& scenario_;
  const Layout& layout_;
  const Plan& plan_;
  const Dataset& dataset_;
  Planner planner_;
  // Layout and plan of steps whose live plan was late.
  struct Plain {
    Layout layout;
    Plan plan;
  };
  std::optional<Plain> plain_;
  std::unique_ptr<LivePlans> live_;
};

struct StepData {
  std::uint64_t step = 0;
  std::uint64_t plan = 0;  // digest of the whole StepPlan and the batch
  bool late = false;       // live planning: the plan was late, the layout's planner was not used
  Program program;         // of this rank
  std::map<WorkId, WorkInput> inputs;
};

// Packs the inputs of the rank's compute ops: pixels where it embeds patches, tokens and labels
// where it runs the language module, latents where a diffusion module begins or ends. Tensors are
// on `device`; copies are queued on its current stream.
std::map<WorkId, WorkInput> pack_inputs(const Program& program, Rank rank, const Dataset& dataset,
                                        Draw draw, torch::Device device = torch::kCPU);

class StepLoader {
 public:
  // All arguments must outlive the loader. `seed`: of the random draws of a step.
  StepLoader(const StepPlanner& planner, const Dataset& dataset, std::uint64_t seed, Rank rank,
             torch::Device device);
  ~StepLoader();

  // Returns the data of `step`, ready for use on any stream, and starts loading step + 1. Rethrows
  // what loading threw. With live planning a step that may be late is loaded for that case, too;
  // returns an empty StepData (no ops) after live planning has ended.
  StepData take(std::uint64_t step);
  // Waits until loading has ended.
  void finish();

 private:
  StepData load(std::uint64_t step) const;
  StepData load_live(std::uint64_t step) const;
  StepData filled(std::uint64_t step, const StepPart& part, Program program) const;

  const StepPlanner& planner_;
  const Dataset& dataset_;
  std::uint64_t seed_;
  Rank rank_;
  torch::Device device_;
  std::optional<OwnStream> stream_;  // of a device: copies must not queue behind its compute
  std::uint64_t ahead_step_ = 0;
  std::future<StepData> ahead_;
};

}  // namespace polyphony::exec
