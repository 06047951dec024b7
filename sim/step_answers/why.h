// The answer of `polyphony why`: where the time of one layout goes, and which changes of the layout
// would make it faster.
//   now            the step, as answer_step() returns it; its parts are traces::part_times()
//   idle           what the idle time of each rank is spent on (traces/compare/idle.h). On every
//                  rank forward, backward, recompute, optimizer and these add up to the step
//   worth_trying   layouts one change away (shared/search/neighbours.h) that fit and are faster, by
//                  gain · certainty. Both steps are estimates without contention, so a simulation
//                  may disagree if links are shared
//     gain         (now - then) / now
//     certainty    P(faster), from the errors that the profile states (shared/chance/belief.h).
//                  Computed for the kCompared largest gains; the others are omitted
//
// If the layout itself does not fit, worth_trying has the layouts that do, fastest first, even if
// they are slower. Not tried: two changes at once, other placements, layouts with a list of
// actions, and what a search does not try (except more chunks of tensor-parallel communication
// overlap).
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "sim/step_answers/step.h"
#include "traces/compare/idle.h"

namespace polyphony::sim {

struct WhyOptions {
  Predictor predictor = Predictor::simulate;
  int jobs = 1;
  Bytes memory{};        // free memory for all threads together; 0: not checked
  int cores = 0;         // as in StepOptions
  std::size_t most = 5;  // number of changes in the answer, at most
  std::function<void(double share)> progress = {};
};

struct WorthTrying {
  Layout layout;
  std::vector<std::string> words;  // "language PP 6 -> 3"
  Seconds step{};                  // estimated
  double gain = 0, certainty = 0;
  Bytes peak_memory{};
  // The change in the settings of the framework that `why --for` names; empty otherwise.
  std::vector<std::string> settings = {};
};

struct WhyAnswer {
  StepAnswer now;
  std::vector<traces::IdleTimes> idle;  // by rank
  Seconds estimate{};                   // estimated step of `now`, for comparison with the changes
  std::vector<WorthTrying> worth_trying;
  // Numbers of changes: evaluated; of these, fit in memory; could not be predicted.
  std::size_t looked_at = 0, fitting = 0, unanswered = 0;
  std::vector<std::string> notes;  // those of `now` first
};

// Analyzes the layout. Conditions, Infeasible and errors as for answer_step().
std::variant<WhyAnswer, Infeasible> answer_why(const Scenario& scenario, const Layout& layout,
                                               const Batch& batch, const HardwareProfile& profile,
                                               const WhyOptions& options);

}  // namespace polyphony::sim
