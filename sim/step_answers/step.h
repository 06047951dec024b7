// What one training step of a layout takes: time and where it goes, memory, how sure that is, what
// it costs, and what would fit where it does not.
//   belief         the step's interval: every error that the profile states, priced again
//   extrapolated   what lies outside the profile's ranges
//   jittered       the same step on other days, when asked for
//   *_mfu          what frameworks would print beside Figures' own (shared/cost/model_flops.h);
//                  zero: the device has no such peak
//   notes          what a reader should know of the answer: lines without file or prefix
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "shared/chance/belief.h"
#include "shared/chance/extrapolation.h"
#include "sim/prediction/figures.h"
#include "sim/prediction/jitter.h"
#include "traces/compare/compare.h"

namespace polyphony::sim {

struct StepOptions {
  Predictor predictor = Predictor::simulate;
  int jitter_steps = 0;  // drawn with the profile's jitter
  int jobs = 1;          // worker processes for them
  int cores = 0;         // of this machine, where a prediction is about it; 0: not judged
  // Steps of more than kMostWhole ops by ranks that stand for all that do the same, where they fold: estimated.
  bool fold_large = false;
  bool trace = false;  // its text will be made
  Bytes memory{};      // of this machine, for the answer; zero: not known
  std::function<void(double share)> progress = {};
};

struct StepAnswer {
  std::string layout;  // "homogeneous  language TP2 PP2 DP1  1f1b x4"
  HardwareProfile profile;
  Prediction prediction;
  Figures figures;
  Belief belief;
  std::vector<Extrapolation> extrapolated;
  std::optional<JitteredSteps> jittered;
  double megatron_mfu = 0, torchtitan_mfu = 0;
  // FLOP/s per GPU as Megatron-LM prints them: before core 0.12, and from it on.
  FlopsPerSecond megatron_full{}, megatron_half{};
  std::vector<traces::PartTimes> parts;  // by rank
  traces::PartTimes mean_parts{};        // of ranks that have ops
  Rank busiest;                          // of `parts`
  bool recomputes = false;               // backwards hold recomputation
  std::string other_software;            // the profile's, when the scenario names another stack
  std::string out_of_memory;             // what it needs and what would fit; empty: it fits
  std::vector<std::string> notes;
};

// Needs a layout that check_layout() accepts. The step whole or, where the options ask for it, folded; `notes` say
// which, where it is large. Infeasible: a link the cluster does not have, or `memory` is too little.
std::variant<Prediction, Infeasible> predict_step(const Scenario& scenario, const Layout& layout,
                                                  const Batch& batch,
                                                  const HardwareProfile& profile,
                                                  const StepOptions& options,
                                                  std::vector<std::string>& notes);
// Needs a layout that check_layout() accepts. Infeasible: as predict_step(). Errors: InputError for jitter that the
// profile does not know. Folded, no energy is counted.
std::variant<StepAnswer, Infeasible> answer_step(const Scenario& scenario, const Layout& layout,
                                                 const Batch& batch, const HardwareProfile& profile,
                                                 const StepOptions& options);

// The worst rank of each stage, in the order of stages.
std::vector<std::pair<std::string, Rank>> worst_by_stage(const Prediction& prediction);

}  // namespace polyphony::sim
