// What one step needs on one rank: the Program of its batch and the inputs of the work items this
// rank runs. Made ahead of time on a thread of its own while the step before trains.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>

#include "exec/data/dataset.h"
#include "exec/planning/live_plans.h"
#include "exec/transport/communicator.h"
#include "shared/lower/lower.h"
#include "shared/step/step_part.h"

namespace polyphony::exec {

// Who plans a step. each: every rank plans it whole and keeps its own part. first: rank 0 plans for
// all and posts the others their parts (Transport::post), which then cost them what they do
// themselves, however many ranks there are. live: rank 0 too, while earlier steps train
// (exec/planning/live_plans.h); what that does not plan in time, evaluations too, is planned as each, without the
// layout's planner.
enum class Planner : std::uint8_t { each, first, live };

// A step of all ranks.
struct WholeStep {
  Program program;
  std::optional<StepRecord> live;  // where it was planned live
};

class StepPlanner {
 public:
  // All arguments must outlive it.
  StepPlanner(Transport& transport, const Scenario& scenario, const Layout& layout,
              const Plan& plan, const Dataset& dataset, Planner planner);

  // Of all ranks, before the first step of a live run, and after its last one. Without live
  // planning they do nothing.
  void go_live(const PlannedRun& run, LiveOptions options);
  void begin(std::uint64_t step) const;
  void stop() const;
  void finish() const;

  // Of a live run; nothing otherwise.
  LivePlans* live() const { return live_.get(); }
  // This rank's part of a step. By rank 0's plan: every rank asks for every step once.
  StepPart part(std::uint64_t step) const;
  Program lower(const StepPart& part) const;
  // Planned here, whoever plans the steps of the training.
  StepPart own_part(const Batch& batch) const;
  Program lower_own(const StepPart& part, StepKind kind = StepKind::train) const;
  // Of all ranks: what a trace's op ids are those of, and what verify() proves. Of a live run: as
  // own_part().
  Program whole(const Batch& batch) const;
  // Of a step that has been trained; of all ranks, in the same order.
  WholeStep whole_of(std::uint64_t step) const;

 private:
  Transport& transport_;
  const Scenario& scenario_;
  const Layout& layout_;
  const Plan& plan_;
  const Dataset& dataset_;
  Planner planner_;
  // What steps have that nobody planned in time.
  struct Plain {
    Layout layout;
    Plan plan;
  };
  std::optional<Plain> plain_;
  std::unique_ptr<LivePlans> live_;
};

struct StepData {
  std::uint64_t step = 0;
  std::uint64_t plan = 0;  // digest of the whole StepPlan
  bool late = false;       // live: planned without the layout's planner
  Program program;         // of this rank
  std::map<WorkId, WorkInput> inputs;
};

// Packs what the rank's compute ops read: pixels where it embeds patches, tokens and labels where
// it runs the language module, latents where a diffusion module begins or ends. Tensors are on
// `device`, queued on its current stream.
std::map<WorkId, WorkInput> pack_inputs(const Program& program, Rank rank, const Dataset& dataset,
                                        Draw draw, torch::Device device = torch::kCPU);

class StepLoader {
 public:
  // All arguments must outlive the loader. `seed`: of what a step draws.
  StepLoader(const StepPlanner& planner, const Dataset& dataset, std::uint64_t seed, Rank rank,
             torch::Device device);
  ~StepLoader();

  // The data of `step`, there for any stream; starts loading step + 1 before it returns. What loading threw is thrown
  // here. Live: a step that may be late is also loaded as if it were.
  StepData take(std::uint64_t step);
  // Waits for what is being loaded.
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
  std::optional<c10::Stream> stream_;  // a device's, so that copies are not behind what it computes
  std::uint64_t ahead_step_ = 0;
  std::future<StepData> ahead_;
};

}  // namespace polyphony::exec
