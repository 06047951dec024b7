// From measured Timelines to a hardware profile that explains them: corrections per (layer kind,
// phase), overheads, latencies, efficiencies.
//   An op's time is the median over the steps of its time at work (traces/compare/activity.h): waiting for
//   others is not its cost. Collectives are fitted first, messages and updates apart; then compute
//   ops, whose inner collectives start from that result. A parameter that the traces do not inform
//   keeps its prior; so do ops of which the prior gives a layer's time, and all device peaks and shape efficiencies. A receive op counts as one
//   latency and the sum of its messages' transfers; one whose messages came apart is left out.
//   The step scalars (global norm) count with the update that waits for them.
// Ranks that did not have their core to themselves (traces/compare/shared_cores.h) are judged by the
// processor time of their ops; their run's step, which holds the waiting, counts for step_error and
// jitter only when every run is like that.
// step_error of the result: the largest of the runs' remaining step errors (estimate() against the
// median), their repeatabilities, and 2 %. It is in-sample: check it on layouts not fitted.
// The profile's certainty: standard errors as principal axes of the last fit's covariance, so that
// parameters which the traces cannot tell apart cancel where they did there (traces/calibrate/certainty.h);
// the ranges of the measured Programs; jitter (traces/calibrate/jitter.h). Does not model: links shared by
// ops at the same time, which ends up in the fitted numbers.
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
  std::vector<Timeline> steps;  // complete; the Program again and again
  // By step, where batches differ: the same ops with other sizes. Empty: `program` every time.
  std::vector<const Program*> step_programs = {};
};

// Of the steps that do what the middle one does, in the same order. Refers to the measurement.
MeasuredRun measured_run(const Measurement& measurement);

struct FittedParameter {
  std::string name;
  double prior = 0, value = 0;  // seconds, or a ratio
  double standard_error = 0;
  std::size_t rows = 0;   // activities it stands in
  bool informed = false;  // the data at least halved the prior's uncertainty
};

struct RunError {
  std::string label;
  Seconds measured{};  // median step
  double before = 0,
         after = 0;  // (estimate − measured) / measured, with the prior and the fitted profile
  double repeatability = 0;
  // That the fitted jitter predicts: of the estimate under kJitterDraws seeds.
  std::optional<double> jitter_repeatability = {};
  std::vector<CoreShare> shared_cores = {};  // ranks that did not have their core to themselves
};
inline constexpr std::size_t kJitterDraws = 200;

struct Calibration {
  HardwareProfile profile;
  std::vector<FittedParameter> parameters;
  std::vector<RunError> runs;
  double compute_noise = 0, message_noise = 0,
         collective_noise = 0;  // relative, of single activities around the fit
};

// `software` names the stack that was measured ("torch 2.11.0, Gloo, 2 cores"), `source` the
// traces.
Calibration calibrate(const HardwareProfile& prior, const std::vector<MeasuredRun>& runs,
                      const std::string& name, const std::string& software,
                      const std::string& source);

}  // namespace polyphony::traces
