// One layout of a sweep, with its lower bound and the predictions made of it:
//   estimate   longest path of the folded Program (shared/lower/fold.h), or of the whole Program if
//              it does not fold; takes milliseconds
//   simulate   the whole Program on SimGrid, and the effects of the profile's errors, which give
//              intervals and comparisons (sim/prediction/effects.h)
// The step times satisfy bound ≤ estimate ≤ simulate. A task lowers the layout once per prediction
// and returns everything that the sweep needs from it. Tasks run on several threads.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "shared/chance/belief.h"
#include "shared/screen/bound.h"
#include "shared/split/planned_layout.h"
#include "sim/prediction/figures.h"
#include "sim/runner/worker_pool.h"
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

// Returns the parts of the critical rank's step by name, in seconds; they add up to the step time.
// Its idle times must be known.
std::map<std::string, double> breakdown_seconds(const Candidate& candidate);

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

// The prediction of a layout: a Candidate of which only the figures, parts, estimate, effects, idle
// times and the counts are set. Infeasible if the cluster lacks a link, or if predicting needs more
// than `memory`, the free memory of this machine (0: not checked; sim/prediction/need.h). The next
// three may run on several threads.
using Predicted = std::variant<Candidate, Infeasible>;

// Returns the estimate; with `effects` also the effects of the profile's errors and the idle times.
Predicted estimate_candidate(const Question& question, const Layout& layout, bool effects,
                             Bytes memory);
// Returns the prediction of the whole Program by `predictor`, with effects and idle times.
Predicted examine_candidate(const Question& question, Predictor predictor, const Layout& layout,
                            Bytes memory);
// Returns the 95th percentile of the step over the first 40 batches of the scenario's stream;
// infinite if one of them does not fit.
std::variant<Seconds, Infeasible> stream_candidate(const Question& question, const Layout& layout,
                                                   Bytes memory);

// Takes the prediction over into the candidate, or why there is none into `why_not`.
void adopt(const Predicted& predicted, Candidate& candidate);
void adopt(const TaskResult<Predicted>& predicted, Candidate& candidate);

// Predictions as JSON text, as journals keep them: the figures, {"infeasible": why}, or
// {"p95": seconds}, null if a batch does not fit.
std::string to_text(const Predicted& predicted);
std::string to_text(const std::variant<Seconds, Infeasible>& p95);
// Each reads such a text into the candidate, as adopt() does. A candidate without a 95th percentile
// keeps none.
void read_answer(const TaskResult<std::string>& answer, Candidate& candidate);
void read_p95(const TaskResult<std::string>& answer, Candidate& candidate);

}  // namespace polyphony::sim
