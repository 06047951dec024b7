// Step times of runs elsewhere -> the profile of the stack that ran them.
//   The profile's stated errors (shared/hardware/certainty.h) are the prior of its parameters'
//   logarithms; every step time is a row (traces/calibrate/posterior.h), its effects those of a re-priced
//   estimate (shared/chance/belief.h), asked for anew at each point until none moves (Gauss-Newton, at
//   most kRounds). A borrowed device: traces/calibrate/evidence_prior.h.
//   A parameter stays within what the profile's reader accepts. One that no row depends on keeps its
//   prior, and is named (`moved`). A profile that states no errors is taken to be off by kUnknown in each
//   parameter, and its residual for that of known ground.
//   What comes back states its own certainty: errors as independent ways to be off of what is left
//   (posterior covariance), the residual that stays with each layout, the footing "stated".
// Memory has no parameter in a profile: it is held against the prediction, and judged by who reads it.
#pragma once

#include "sim/evidence/step_evidence.h"

namespace polyphony::sim {

inline constexpr int kRounds = 8;

struct StepRow {
  std::string source;
  Seconds measured{}, before{}, after{};  // 0: no step time
  // By a fit to the other rows (the prior, if there are none): ln(measured / predicted), and what was stated of it.
  double unseen = 0, unseen_deviation = 0;
  bool outlier = false;
  std::optional<Bytes> memory, reserved;  // measured
  Bytes predicted_memory{};
};
struct ParameterMove {
  std::string key;
  double prior = 0, value = 0;                // seconds, or a ratio
  double prior_deviation = 0, deviation = 0;  // relative
  bool moved = false;                         // the evidence says something of it
};
struct StepCalibration {
  HardwareProfile profile;
  std::vector<StepRow> rows;
  std::vector<ParameterMove> parameters;
  int freedom = 0;
};
StepCalibration calibrate_steps(const HardwareProfile& prior,
                                const std::vector<StepEvidence>& evidence, const std::string& name);

// Relative deviation that a profile's errors make of each parameter, by key.
std::map<std::string, double> parameter_deviations(const Certainty& certainty);

}  // namespace polyphony::sim
