// What the tests of verify() share: a correct Program, and the faults found as kinds and as text.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "shared/verify/verify.h"
#include "tests/shared/support/hand_made.h"

namespace polyphony::hand_made {

inline std::set<FaultKind> kinds(const std::vector<Fault>& faults) {
  std::set<FaultKind> result;
  for (const Fault& fault : faults) result.insert(fault.kind);
  return result;
}

inline std::string text(const std::vector<Fault>& faults) {
  std::string result;
  for (const Fault& fault : faults)
    result += std::string(name(fault.kind)) + ": " + fault.text + "\n";
  return result;
}

// 2 stages × 2 microbatches × 2 lanes: ranks 0 and 1 hold stage 0 (layers [0,2)), ranks 2 and 3
// stage 1 (layers [2,4)). Lane 0 runs works 0 and 1 (on ranks 0 and 2), lane 1 works 2 and 3.
inline Program base() { return pipeline({.stages = 2, .microbatches = 2, .lanes = 2}); }

}  // namespace polyphony::hand_made
