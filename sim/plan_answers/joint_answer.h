// The answer of `polyphony plan --stages`: a number of pipeline stages assigned to the modules,
// once by costs that take frozen modules into account (aware) and once without (unaware).
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/split/joint_split.h"

namespace polyphony::sim {

struct JointRow {
  JointSplit split;
  std::string refused;  // why the layout is not legal; empty: it is legal, and the rest is set
  Seconds step{};       // estimated
  Bytes memory{};       // peak of the rank with the largest peak
};
struct JointAnswer {
  const Scenario* scenario = nullptr;
  int stages = 0;
  std::vector<JointRow> rows;  // aware, unaware
};

// Returns both assignments, or Infeasible if `stages` cannot be divided among the modules.
std::variant<JointAnswer, Infeasible> answer_joint(const Scenario& scenario,
                                                   const HardwareProfile& profile, int stages);

}  // namespace polyphony::sim
