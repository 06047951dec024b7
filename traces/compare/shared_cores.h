// Detects ranks that shared their CPU core with another program during measured steps. It compares
// recorded time with processor time of the ops that only compute (without collectives inside). For
// a rank with a core of its own the ratio is slightly above 1 (page faults, interrupts); next to a
// program with equal load it is 2.
//
// A rank with several compute threads records the processor time of its whole process, so the ratio
// is that of the sum: sharing is visible only if it is substantial.
//
// Does not model caches and memory channels shared with a program on another core, nor a clock that
// slows down. Ranks that record no processor time (emulated compute, GPU, older traces) are not
// judged.
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

// Ratio above which a core counts as shared: above the few hundredths seen on idle machines, below
// the effect of any program that runs on the same core. Assumed: a calibration must report an error
// of a tenth of a step.
inline constexpr double kSharedCore = 1.1;

struct RecordedStep {
  const Program* program = nullptr;
  const Timeline* timeline = nullptr;
};
// Returns the ranks whose ratio is above kSharedCore, the largest ratio first. All steps must have
// the same ranks.
std::vector<CoreShare> find_shared_cores(const std::vector<RecordedStep>& steps);
std::vector<CoreShare> find_shared_cores(const Program& program,
                                         const std::vector<Timeline>& steps);
// Returns a text such as "rank 1 waited for its core 38 % of the time that it computed", for all
// ranks.
std::string describe(const std::vector<CoreShare>& shared);

// Subtracts the time in which the ranks of `shared` waited for their core from the active time of
// their ops (`activity` is find_activity() of the Timeline).
void take_waiting(const Program& program, const Timeline& timeline,
                  const std::vector<CoreShare>& shared, Activity& activity);

}  // namespace polyphony::traces
