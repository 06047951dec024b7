// One layout of a sweep: its bound, then what a worker process found of it.
//   A worker lowers the layout once, and sends back all that the sweep needs of it: figures, parts,
//   and the effects of the profile's errors, for intervals and comparisons. Where the layout folds,
//   those are priced on a second, small Program, of ranks that stand for all (sim/prediction/effects.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/chance/belief.h"
#include "shared/search/search.h"
#include "sim/prediction/figures.h"
#include "traces/compare/compare.h"

namespace polyphony::sim {

struct Candidate {
  Layout layout;
  std::string text;  // the layout in words
  Bound bound;
  Figures figures;            // of the prediction
  traces::PartTimes parts{};  // of the critical rank
  Seconds estimate{};
  std::vector<double> effects;             // by HardwareProfile::certainty.errors
  std::uint64_t lowerings = 0;             // Programs that the worker lowered for it
  std::optional<Belief> belief{};          // of the first SweepOptions::compared
  std::optional<Difference> difference{};  // from the best; of those but the best
  bool tied = false;                       // the best is tied with itself
};

// What a worker sends back of a candidate. Infeasible: a link the cluster does not have.
std::string examine_candidate(const Scenario& scenario, const Batch& batch,
                              const HardwareProfile& profile, Predictor predictor,
                              const Layout& layout);
// The same of one that is not examined.
std::string refused_candidate(const std::string& why);
// Reads that into the candidate. Returns why there is no answer; empty: there is one.
std::string read_examined(const std::string& answer, Candidate& candidate);

}  // namespace polyphony::sim
