// The scenario of a question as a file that a person goes on with: each part has a comment above.
#pragma once

#include <string>

#include "sim/question/question.h"

namespace polyphony::sim {

// Returns the scenario's JSON with comments (// to the end of the line, which scenario files may
// have).
std::string commented(const AskedScenario& asked);

}  // namespace polyphony::sim
