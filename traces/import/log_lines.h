// Parses one line of a framework's log. framework_log.h lists the lines that are recognized.
#pragma once

#include <string_view>

#include "traces/import/framework_log.h"

namespace polyphony::traces {

struct LogLine {
  enum class What : std::uint8_t { nothing, step, step_time, phases, memory, garbled };
  What what = What::nothing;
  Framework framework = Framework::megatron;
  LoggedStep step;
  std::optional<Bytes> allocated, reserved;
};
LogLine read_log_line(std::string_view line);

// Returns the line without the color codes of terminals ("\x1b[…m").
std::string without_colours(std::string_view line);
// Returns the rank in the prefix of the line ("[rank3]:", "[default3]:", "3:", "[Rank 3]"), or -1
// if there is none.
int rank_of_line(std::string_view line);

}  // namespace polyphony::traces
