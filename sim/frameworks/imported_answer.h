// The answer of `polyphony import`: the scenario, what became of the settings, and, where a log is
// given, the measured step beside the predicted one.
#pragma once

#include <optional>
#include <string>

#include "shared/units.h"
#include "sim/frameworks/import.h"

namespace polyphony::sim {

struct StepBeside {
  Seconds measured{};      // zero: no log or profile has steps
  int lines = 0;           // of the log that it is the median of, or steps of profiles
  std::string log;         // its path, or the profiles'
  bool profiled = false;   // by profiles
  Seconds predicted{};     // zero: the layout cannot be predicted
  Bytes memory{}, room{};  // of the rank that needs most, and of a device
};

struct ImportAnswer {
  Imported imported;
  std::string layout;  // in words; empty: it cannot be predicted
  StepBeside step;
  std::string written;  // the file that has the scenario; empty: none
};

}  // namespace polyphony::sim
