// A profile as it was read, before its launches are joined to what they launched.
#pragma once

#include "traces/kineto/host_spans.h"

namespace polyphony::traces {

// Its calls by their correlations: the wait's, and that of the record of the event.
struct RecordedWait {
  std::int32_t stream = 0, on = 0;
  std::int64_t asked = 0, recorded = 0;
};

struct Recorded {
  DeviceTrace trace;  // events as in the file, their times too; names are still apart
  Names names;
  std::vector<HostSpan> spans;
  std::vector<Launch> launches;
  std::vector<RecordedWait> stream_waits;
  std::vector<std::int64_t> correlations;           // by event; -1: none
  std::vector<std::int32_t> devices;                // by event
  std::map<CollectiveShape, std::uint32_t> shapes;  // of trace.collectives
  std::optional<Nanoseconds> base = {};             // Unix time of the file's 0

  std::uint32_t add(const CollectiveShape& shape);
};

// Classes, operators, sizes, steps; times from the origin on; events in order. `step`: how the names of
// steps begin, for the note where there are none.
DeviceTrace finished(Recorded recorded, const std::string& step);

}  // namespace polyphony::traces
