// Steps named on the command line: "3", "3,7", "5:8" (8 excluded), or several of these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace polyphony::exec {

struct StepList {
  struct Part {
    std::int64_t first = 0, last = 0;  // [first, last)
  };
  std::vector<Part> parts;  // as written

  bool empty() const { return parts.empty(); }
  bool contains(std::int64_t step) const;
  // Returns the largest step; -1 if there is none.
  std::int64_t largest() const;
  std::int64_t smallest() const;
};

// Parses the value of an option. An empty text has no steps. Throws InputError with the option's
// name.
StepList parse_step_list(const std::string& text, const std::string& option);

}  // namespace polyphony::exec
