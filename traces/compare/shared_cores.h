// Whether ranks had their cores to themselves while steps were measured: of the ops that compute
// alone (no collectives inside), recorded time over processor time. On a core of its own the ratio
// is 1 and a little (page faults, interrupts); beside a program of equal weight it is 2.
//   A rank with several compute threads records the processor time of its whole process, so that
//   the ratio is of their sum: sharing shows only where it is coarse.
// Does not model: caches and memory channels shared with another core's program; a clock that slows
// down. Nothing is said of ranks that record no processor time (paced, GPU, older traces).
#pragma once

#include <string>
#include <vector>

#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "traces/compare/activity.h"

namespace polyphony::traces {

struct CoreShare {
  Rank rank;
  Seconds recorded{}, processor{};  // sums over ops and steps
  double ratio() const { return recorded / processor; }
};

// Above the few hundredths that idle machines show, below any program that runs beside a rank.
// Assumed; a tenth of a step is the error that a calibration must not carry unnamed.
inline constexpr double kSharedCore = 1.1;

struct RecordedStep {
  const Program* program = nullptr;
  const Timeline* timeline = nullptr;
};
// The ranks whose ratio is above kSharedCore, the worst first. All steps are of the same ranks.
std::vector<CoreShare> find_shared_cores(const std::vector<RecordedStep>& steps);
std::vector<CoreShare> find_shared_cores(const Program& program,
                                         const std::vector<Timeline>& steps);
// "rank 1 waited for its core 38 % of the time that it computed"; one rank after the other.
std::string describe(const std::vector<CoreShare>& shared);

// Takes from the work of those ranks' ops (find_activity() of the Timeline) what they waited for
// their core.
void take_waiting(const Program& program, const Timeline& timeline,
                  const std::vector<CoreShare>& shared, Activity& activity);

}  // namespace polyphony::traces
