// Computes the critical path of a step: starting from the last op, it goes back to the predecessor
// that ended last. The pieces of the path follow each other without gaps and add up to the step
// time.
//
// Predecessors of an op: the previous op on its stream, the ops that it waits for, and the same for
// all ops that run together with it (members of its collective, the sends of the messages that it
// receives).
//
// The Timeline must be simulated. Recorded Timelines have gaps: replay them first
// (traces/replay/node_times.h).
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
// Returns the path in order of time.
std::vector<PathPiece> critical_path(const Program& program, const Timeline& timeline);

}  // namespace polyphony::traces
