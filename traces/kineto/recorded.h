// A profile as it was read, before launches are connected to the events that they launched.
#pragma once

#include "traces/kineto/host_spans.h"
#include "traces/kineto/host_work.h"

namespace polyphony::traces {

// A recorded wait between streams. Its calls are given by their correlations: that of the wait, and
// that of the recording of the event.
struct RecordedWait {
  std::int32_t stream = 0, on = 0;
  std::int64_t asked = 0, recorded = 0;
};

struct Recorded {
  DeviceTrace trace;  // events and times as in the file; names are still in `names`
  Names names;
  std::vector<HostSpan> spans;
  std::vector<HostCall> calls;  // in place of spans and launches, if trace.on_host
  std::vector<Launch> launches;
  std::vector<RecordedWait> stream_waits;
  std::vector<std::int64_t> correlations;           // by event; -1: no correlation
  std::vector<std::int32_t> devices;                // by event
  std::map<CollectiveShape, std::uint32_t> shapes;  // indices into trace.collectives
  std::optional<Nanoseconds> base = {};             // Unix time of the file's time 0

  std::uint32_t add(const CollectiveShape& shape);
};

// Completes the trace: sets classes, operators, sizes and steps, makes times relative to the
// origin, and sorts the events. `step`: prefix of the names of steps, for the note if there are
// none.
DeviceTrace finished(Recorded recorded, const std::string& step);

}  // namespace polyphony::traces
