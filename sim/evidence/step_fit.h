// Fits a hardware profile to step times and kernel times measured elsewhere, on another software
// stack.
//   The profile's stated errors (shared/hardware/certainty.h) are the prior of the logarithms of
//   its parameters. Every step time is a row of the fit (traces/calibrate/posterior.h); its
//   sensitivities are those of a repriced estimate (shared/chance/belief.h), recomputed at each
//   point until no parameter moves (Gauss-Newton, at most kRounds). Borrowed devices:
//   traces/calibrate/evidence_prior.h.
//
//   A parameter stays within the range that the reader of profiles accepts. A parameter that no row
//   depends on keeps its prior; `moved` is false for it. A profile without stated errors is assumed
//   to be off by kUnknown in each parameter, with the residual of a calibrated one.
//
//   The result states its own certainty: independent errors derived from the posterior covariance,
//   the residual that remains for each layout, and the calibration basis "stated".
//
// Times of kernels (sim/evidence/kernel_rows.h) are rows, too. A parameter that they measure
// directly is free to move: what a fit of published step times states as its error, a few percent,
// is that of the fit, not how far another machine, driver or library may be from it. Its deviation
// before the fit is at least traces::kUnknown.
//
// A profile has no parameter for memory: measured memory is only reported next to the prediction.
#pragma once

#include "sim/evidence/step_evidence.h"

namespace polyphony::sim {

inline constexpr int kRounds = 8;

struct StepRow {
  std::string source;
  Seconds measured{}, before{}, after{};  // before and after the fit; 0: no step time
  // Prediction by a fit to the other rows (by the prior, if there are none): ln(measured /
  // predicted), and the deviation stated for it.
  double unseen = 0, unseen_deviation = 0;
  bool outlier = false;
  std::optional<Bytes> memory, reserved;  // measured
  Bytes predicted_memory{};
};
// A group of kernels in the profiles of a run.
struct KernelFitRow {
  std::string source, kernels;            // `kernels`: the groups
  Seconds measured{}, before{}, after{};  // of a step
  std::int64_t count = 0;                 // of kernels, in a step
  std::string longest;                    // the kernel with the most time, and its share
  double longest_share = 0;
  bool outlier = false;
};
struct ParameterMove {
  std::string key;
  double prior = 0, value = 0;                // seconds, or a ratio
  double prior_deviation = 0, deviation = 0;  // relative
  bool moved = false;                         // some row depends on it
};
struct StepCalibration {
  HardwareProfile profile;
  std::vector<StepRow> rows;
  std::vector<ParameterMove> parameters;
  int freedom = 0;
  std::vector<KernelFitRow> kernels = {};
  std::string prior = {};  // name of the profile before the fit
};
StepCalibration calibrate_steps(const HardwareProfile& prior,
                                const std::vector<StepEvidence>& evidence, const std::string& name);

// Returns the relative deviation of each parameter, by key, that follows from a profile's errors.
std::map<std::string, double> parameter_deviations(const Certainty& certainty);

}  // namespace polyphony::sim
