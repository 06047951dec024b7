// One line of a framework's log (framework_log.h says which ones), as what it says.
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

// Without "\x1b[…m", which terminals colour by.
std::string without_colours(std::string_view line);
// That the line's head names: "[rank3]:", "[default3]:", "3:", "[Rank 3]"; -1: none.
int rank_of_line(std::string_view line);

}  // namespace polyphony::traces
