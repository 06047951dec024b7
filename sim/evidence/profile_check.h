// A profile checked against measured steps, and its numbers against plausible ones: the answer of
// `polyphony profile check`.
#pragma once

#include <string>
#include <vector>

#include "sim/evidence/step_evidence.h"

namespace polyphony::sim {

struct CheckedStep {
  std::string source;
  Seconds predicted{}, low{}, high{};  // with its 90 % interval
  Seconds measured{};
  bool inside = false, beyond = false;  // inside the 90 % interval; outside the 99.9 % interval
};
struct CheckedMemory {
  std::string source;
  Bytes measured{}, predicted{};  // `predicted` is allocated memory
  bool reserved = false;          // `measured` is of the allocator's pool
};
struct ProfileCheck {
  std::vector<CheckedStep> steps;
  std::vector<CheckedMemory> memory;  // not judged: a profile has no parameter for memory
  std::vector<std::string> implausible;
  // Returns whether every step is within the stated errors, and every number is plausible.
  bool passed() const;
};

// Throws InputError if evidence is of another device than the profile, and as quick_step() does.
ProfileCheck check_profile(const HardwareProfile& profile,
                           const std::vector<StepEvidence>& evidence);

}  // namespace polyphony::sim
