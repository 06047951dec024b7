// One layout of a sweep: its bound, then what worker processes found of it.
//   estimate   the longest path of the folded Program where it folds (shared/plan/plan.h), of the
//              whole one otherwise: milliseconds
//   simulate   the whole Program on SimGrid, and the effects of the profile's errors, for intervals
//              and comparisons (sim/prediction/effects.h)
// bound ≤ estimate ≤ simulate. A worker lowers the layout once for each, and sends back all that a
// sweep needs of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/chance/belief.h"
#include "shared/screen/bound.h"
#include "sim/prediction/figures.h"
#include "traces/compare/compare.h"
#include "traces/compare/idle.h"

namespace polyphony::sim {

// The step beside a baseline's: (this - baseline) / baseline.
struct StepChange {
  double ratio = 0;
  std::optional<std::pair<double, double>> interval{};  // 90 %
};

struct Candidate {
  Layout layout;
  std::string text;  // the layout in words
  Bound bound;
  Figures figures;            // of the sharpest predictor so far
  traces::PartTimes parts{};  // of the critical rank, where effects are known
  Seconds estimate{};
  bool simulated = false;
  bool folded = false;   // figures are of one lane that stands for all
  std::int64_t ops = 0;  // of the Program that was lowered: what an answer costs
  std::vector<double>
      effects;  // by HardwareProfile::certainty.errors; of those that were asked for
  std::optional<traces::IdleTimes> idle{};  // of the critical rank, where effects are known
  std::uint64_t lowerings = 0;              // Programs that the worker lowered for it
  std::string why_not;                      // no answer: why; empty: there is one
  std::optional<Belief> belief{};           // where effects are known
  std::optional<Difference> difference{};   // from the best; of those but the best
  std::optional<StepChange> change{};       // from the first baseline
  bool tied = false;                        // the best is tied with itself
  // 95th percentile of the step over batches of varying data; infinite: one of them does not fit.
  std::optional<Seconds> p95{};
};

struct Question {
  const Scenario& scenario;
  const HardwareProfile& profile;
  const Batch& batch;
  const std::vector<WorkSize>& sizes;  // module_sizes() of the batch (shared/cost/layer_costs.h)
};

// What a worker sends back of a candidate: its estimate; with `effects`, those and its idle times too;
// its simulation and all of these. Infeasible: a link the cluster does not have, or no memory to predict it with
// (`memory` free, 0: not judged; sim/prediction/need.h).
std::string estimate_candidate(const Question& question, const Layout& layout, bool effects,
                               Bytes memory);
std::string examine_candidate(const Question& question, Predictor predictor, const Layout& layout,
                              Bytes memory);
// Of the first 40 batches of the scenario's stream: {"p95": seconds}, null where one does not fit.
std::string stream_candidate(const Question& question, const Layout& layout, Bytes memory);
// Reads that into the candidate.
void read_answer(const std::string& answer, Candidate& candidate);
void read_p95(const std::string& answer, Candidate& candidate);

}  // namespace polyphony::sim
