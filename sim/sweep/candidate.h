// One layout of a sweep, with its lower bound and the predictions made of it:
//   estimate   longest path of the folded Program (shared/lower/fold.h), or of the whole Program if
//              it does not fold; takes milliseconds
//   simulate   the whole Program on SimGrid, and the effects of the profile's errors, which give
//              intervals and comparisons (sim/prediction/effects.h)
// The step times satisfy bound ≤ estimate ≤ simulate. A task lowers the layout once per prediction
// and returns everything that the sweep needs from it. Tasks run on several threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shared/chance/belief.h"
#include "shared/screen/bound.h"
#include "shared/split/planned_layout.h"
#include "sim/prediction/figures.h"
#include "traces/compare/compare.h"
#include "traces/compare/idle.h"

namespace polyphony::sim {

// Relative difference from the step of a baseline: (this - baseline) / baseline.
struct StepChange {
  double ratio = 0;
  std::optional<std::pair<double, double>> interval{};  // 90 %
};

struct Candidate {
  Layout layout;
  PlannerCosts costs{};  // that the scenario states next to this layout
  std::string text;      // the layout in words
  Bound bound;
  Figures figures;            // of the most accurate predictor that has run
  traces::PartTimes parts{};  // of the critical rank; set if effects are known
  Seconds estimate{};
  bool simulated = false;
  bool folded = false;          // figures are from one replica that represents all
  std::int64_t ops = 0;         // ops of the lowered Program: the cost of predicting it
  std::vector<double> effects;  // by HardwareProfile::certainty.errors; empty if not requested
  std::optional<traces::IdleTimes> idle{};  // of the critical rank; set if effects are known
  std::uint64_t lowerings = 0;              // Programs that were lowered for it
  std::string why_not;                      // why it has no prediction; empty: it has one
  std::optional<Belief> belief{};           // set if effects are known
  std::optional<Difference> difference{};   // from the best candidate; not set for the best
  std::optional<StepChange> change{};       // from the first baseline
  bool tied = false;                        // with the best; true for the best itself
  // 95th percentile of the step over batches with varying data; infinite if one does not fit.
  std::optional<Seconds> p95{};
};

// What all candidates of a sweep have in common: the inputs that their layouts are planned from.
struct Question {
  explicit Question(std::shared_ptr<const PlanInputs> all)
      : inputs(std::move(all)),
        scenario(inputs->scenario()),
        profile(inputs->profile()),
        batch(inputs->typical()),
        sizes(inputs->sizes()) {}

  std::shared_ptr<const PlanInputs> inputs;
  const Scenario& scenario;
  const HardwareProfile& profile;
  const Batch& batch;                  // the typical one
  const std::vector<WorkSize>& sizes;  // of its microbatches, by module
};

// The next three may run on several threads and return the text of a JSON object, which a journal
// keeps. It has one of these forms:
//   a prediction    the figures of a Candidate, under the keys of to_json() in candidate.cpp: times
//                   in seconds ("step", "estimate", "parts", "idle"), memory in bytes, energy in
//                   joules (0: absent), prices in dollars, "mfu" as a fraction, "effects" as
//                   changes of ln(step) (shared/chance/belief.h)
//   {"p95": S}      seconds, or null
//   {"infeasible": WHY}    the cluster lacks a link, or predicting needs more than `memory`, the
//                   free memory of this machine (0: not checked; sim/prediction/need.h)
//   {"error": WHY}  never returned here: run_on_threads() writes it if one of these throws

// Returns the estimate; with `effects` also the effects of the profile's errors and the idle times.
std::string estimate_candidate(const Question& question, const Layout& layout, bool effects,
                               Bytes memory);
// Returns the prediction of the whole Program by `predictor`, with effects and idle times.
std::string examine_candidate(const Question& question, Predictor predictor, const Layout& layout,
                              Bytes memory);
// Returns the 95th percentile of the step over the first 40 batches of the scenario's stream:
// {"p95": S}, with null if one of them does not fit.
std::string stream_candidate(const Question& question, const Layout& layout, Bytes memory);
// Parses a prediction into the candidate. Any other form sets Candidate::why_not to its reason.
void read_answer(const std::string& answer, Candidate& candidate);
// Parses {"p95": S} into Candidate::p95, null as infinity. Other forms leave the candidate
// unchanged.
void read_p95(const std::string& answer, Candidate& candidate);

}  // namespace polyphony::sim
