// Where the time of one layout goes, and what to change of it.
//   now           the step as answer_step() says it; its parts are traces::part_times()
//   idle          what the idle time of each rank was spent on (traces/compare/idle.h); on every rank
//                 forward, backward, recompute, optimizer and these add up to the step
//   worth_trying  of the layouts one step away (shared/search/neighbours.h) those that fit, are faster
//                 and different at rest, by gain × certainty. Both sides are estimates (contention left
//                 out), so that a simulation may say otherwise where links are shared
//     gain        (now - then) / now
//     certainty   P(faster), from what the profile says of its errors (shared/chance/belief.h); of the
//                 kCompared of largest gain, others are left out
// A layout that does not fit is offered what fits, fastest first, slower or not. Not looked at: two
// changes at once; other placements; layouts with actions of their own; what a search would leave out,
// but for products in more pieces.
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
  Bytes memory{};  // free for the worker processes together; 0: not judged
  int cores = 0;   // as StepOptions
  std::size_t most = 5;
  std::function<void(double share)> progress = {};
};

struct WorthTrying {
  Layout layout;
  std::vector<std::string> words;  // "language PP 6 -> 3"
  Seconds step{};                  // estimated
  double gain = 0, certainty = 0;
  Bytes peak_memory{};
};

struct WhyAnswer {
  StepAnswer now;
  std::vector<traces::IdleTimes> idle;  // by rank
  Seconds estimate{};                   // of now, as the changes' steps
  std::vector<WorthTrying> worth_trying;
  std::size_t looked_at = 0, fitting = 0, unanswered = 0;  // changes
  std::vector<std::string> notes;                          // now's first
};

// As answer_step().
std::variant<WhyAnswer, Infeasible> answer_why(const Scenario& scenario, const Layout& layout,
                                               const Batch& batch, const HardwareProfile& profile,
                                               const WhyOptions& options);

}  // namespace polyphony::sim
