// A measured step as durations of the activities of its Program's graph (shared/graph/compile.h): what
// estimate() and the simulator need to play the step again.
//   ready  all that the activity follows has ended; for what follows nothing, when its op was recorded
//   time   compute with collectives inside, collective: from the last member's ready to the last end
//          message: from both ends' ready to the first recorded end; of a receive's messages, the one
//          that starts last lasts until the receive ends, and so does its only one
//   late   of what follows nothing: its recorded start. Ranks do not begin a step together
// So waiting is never part of a time and follows again from the graph, and all time between things that wait
// for each other (waking up, dispatch) is. Played again, every compute op, collective and receive ends when it was
// recorded to; a send ends with its receive, which is where the rules of program.h and a transport
// that buffers differ. Does not tell apart: links shared at the same time, which stay in the times.
#pragma once

#include <vector>

#include "shared/graph/compile.h"
#include "shared/program/timeline.h"

namespace polyphony::traces {

struct NodeTimes {
  std::vector<Seconds> time, late;  // by Compiled node
};
// `timeline`: complete.
NodeTimes node_times(const Program& program, const Compiled& compiled, const Timeline& timeline);

}  // namespace polyphony::traces
