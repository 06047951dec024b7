// Fits a hardware profile to measured Timelines: corrections per (layer kind, phase), overheads,
// latencies and efficiencies.
//
// Time of an op: the median over the steps of the time in which it was active
// (traces/compare/activity.h). Waiting for other ranks is not part of an op's cost.
//
// Order of the fits: first collectives, messages and updates, each kind separately; then compute
// ops, whose inner collectives start from the result for collectives. A parameter that the traces
// do not inform keeps its prior. Device peaks, shape efficiencies, and ops with a layer time given
// by the prior profile are not fitted. A receive op counts as one latency plus the sum of the
// transfer times of its messages; a receive whose messages arrived at separate times is omitted.
// Step scalars (such as the global norm) count with the update that waits for them.
//
// Ranks that shared a core with another program (traces/compare/shared_cores.h) are judged by the
// processor time of their ops. The step time of such a run includes the waiting for the core, so it
// counts for step_error and jitter only if all runs are like that.
//
// step_error of the result: the maximum of the remaining step errors of the runs (estimate()
// against the measured median), of their repeatabilities, and of 2 %. It is an in-sample error:
// check it on layouts that were not fitted.
//
// The certainty of the resulting profile holds standard errors as principal axes of the covariance
// of the last fit, so that parameters that the traces could not separate cancel where they cancel
// in the traces (traces/calibrate/certainty.h); the ranges of the measured Programs; and the jitter
// (traces/calibrate/jitter.h).
//
// Does not model links shared by simultaneous ops: their effect ends up in the fitted numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "traces/compare/shared_cores.h"
#include "traces/evidence/measurement.h"

namespace polyphony::traces {

struct MeasuredRun {
  std::string label;  // for tables: "non-colocated, step 12"
  const Program* program = nullptr;
  Cluster cluster;
  std::vector<Timeline> steps;  // complete Timelines, one per measured step
  // One Program per step if batches differ: the same ops with other sizes. Empty: all steps ran
  // `program`.
  std::vector<const Program*> step_programs = {};
};

// Returns the run of those measured steps that run the same ops as the middle step, in the same
// order. Keeps pointers into `measurement`.
MeasuredRun measured_run(const Measurement& measurement);

struct FittedParameter {
  std::string name;
  double prior = 0, value = 0;  // seconds, or a ratio
  double standard_error = 0;
  std::size_t rows = 0;   // number of activities whose time depends on it
  bool informed = false;  // the data at least halved the uncertainty of the prior
};

struct RunError {
  std::string label;
  Seconds measured{};  // median step
  double before = 0,
         after = 0;  // (estimate − measured) / measured, with the prior and the fitted profile
  double repeatability = 0;
  // The repeatability that the fitted jitter predicts: spread of the estimate over kJitterDraws
  // seeds.
  std::optional<double> jitter_repeatability = {};
  std::vector<CoreShare> shared_cores = {};  // ranks that shared their core with another program
};
inline constexpr std::size_t kJitterDraws = 200;

struct Calibration {
  HardwareProfile profile;
  std::vector<FittedParameter> parameters;
  std::vector<RunError> runs;
  double compute_noise = 0, message_noise = 0,
         collective_noise = 0;  // relative deviation of single activities from the fit
};

// Returns `prior` corrected by the measured runs, with the fit's parameters and errors. `name` is
// the name of the new profile, `software` the measured stack ("torch 2.11.0, Gloo, 2 cores"),
// `source` a description of the traces.
Calibration calibrate(const HardwareProfile& prior, const std::vector<MeasuredRun>& runs,
                      const std::string& name, const std::string& software,
                      const std::string& source);

}  // namespace polyphony::traces
