// Converts a measured step to durations of the activities of its Program's graph
// (shared/graph/compile.h). estimate() and the simulator need them to replay the step.
//
//   ready  when all predecessors of the activity have ended; for an activity without predecessors,
//          when its op was recorded to start
//   time   compute with inner collectives, collective: from the ready time of the last member to
//            the last end
//          message: from the moment when both ends are ready to the first recorded end. Of a
//            receive's messages, the one that starts last lasts until the receive ends; so does a
//            single message
//   late   recorded start of an activity without predecessors: ranks do not begin a step together
//
// Waiting is therefore never part of a time and follows again from the graph. All time between
// activities that depend on each other (waking up, dispatch) is part of a time.
//
// In the replay, every compute op, collective and receive ends when it was recorded to end. A send
// ends with its receive; there the rules of program.h differ from a transport that buffers. Does
// not separate the effect of links shared by simultaneous transfers: it stays in the times.
#pragma once

#include <vector>

#include "shared/graph/compile.h"
#include "shared/program/timeline.h"

namespace polyphony::traces {

struct NodeTimes {
  std::vector<Seconds> time, late;  // by Compiled node
};
// Returns the durations. `timeline` must be complete.
NodeTimes node_times(const Program& program, const Compiled& compiled, const Timeline& timeline);

}  // namespace polyphony::traces
