// The answer of `polyphony simulate`: time and memory of one training step of a layout, where the
// time goes, how uncertain the prediction is, what the step costs, and, if it does not fit in
// memory, what would fit.
//   belief         uncertainty of the step: its change for each error that the profile states
//   extrapolated   what lies outside the ranges that the profile was fitted to
//   jittered       the step with random jitter, if requested
//   *_mfu          MFU as other frameworks would print it, in addition to that of Figures
//                  (shared/cost/model_flops.h); zero: the device's peak is unknown
//   notes          remarks for the user, one line each, without file or prefix
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
  int jitter_steps = 0;  // number of steps to draw with the profile's jitter
  int jobs = 1;          // threads for these
  int cores = 0;         // of this machine, if the scenario runs on it; 0: not checked
  // Fold steps with more than kMostWhole ops, if they can be folded. These are estimated.
  bool fold_large = false;
  bool trace = false;  // the text of a trace will be produced
  Bytes memory{};      // free memory of this machine; zero: unknown
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
  traces::PartTimes mean_parts{};        // mean over ranks that have ops
  Rank busiest;                          // the rank that idles least
  bool recomputes = false;               // backward passes include recomputation
  std::string other_software;            // the profile's stack, if the scenario names another one
  std::string out_of_memory;             // what the layout needs and what would fit; empty: it fits
  std::vector<std::string> notes;
};

// Predicts the whole step, or the folded one if the options allow it and the step is large; `notes`
// then states which. The layout must be accepted by check_layout(). Returns Infeasible if the
// cluster does not have a link that the layout needs, or if options.memory is too small for the
// prediction.
std::variant<Prediction, Infeasible> predict_step(const Scenario& scenario, const Layout& layout,
                                                  const Batch& batch,
                                                  const HardwareProfile& profile,
                                                  const StepOptions& options,
                                                  std::vector<std::string>& notes);
// Predicts a step with everything that StepAnswer contains. Conditions and Infeasible as for
// predict_step(). Throws InputError if jitter is requested and the profile has none.
std::variant<StepAnswer, Infeasible> answer_step(const Scenario& scenario, const Layout& layout,
                                                 const Batch& batch, const HardwareProfile& profile,
                                                 const StepOptions& options);

// Returns for each stage, in order, its name and its rank with the largest peak memory.
std::vector<std::pair<std::string, Rank>> worst_by_stage(const Prediction& prediction);

}  // namespace polyphony::sim
