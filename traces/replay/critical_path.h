// What the length of a step is made of: from its last op backwards, always to what ended last of all that had to
// end before. Its pieces follow each other without gaps and add up to the step.
//   Had to end before an op: the op before it on its stream, what it waits for, and the same of all ops that it
//   works together with (members of its collective, the sends of what it receives).
// Of a Timeline that was played (recorded ones have gaps: play them, traces/replay/node_times.h).
#pragma once

#include <string>
#include <vector>

#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony::traces {

struct PathPiece {
  OpId op;
  Seconds start{}, end{};
};
// In the order of time.
std::vector<PathPiece> critical_path(const Program& program, const Timeline& timeline);

}  // namespace polyphony::traces
