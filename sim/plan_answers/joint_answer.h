// Pipeline stages dealt to modules, aware of what trains and unaware, beside each other.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/split/joint_split.h"

namespace polyphony::sim {

struct JointRow {
  JointSplit split;
  std::string refused;  // why the layout is not legal; empty: it is, and the rest is known
  Seconds step{};       // estimated
  Bytes memory{};       // of its worst rank
};
struct JointAnswer {
  const Scenario* scenario = nullptr;
  int stages = 0;
  std::vector<JointRow> rows;  // aware, unaware
};

// Infeasible: so many stages cannot be dealt.
std::variant<JointAnswer, Infeasible> answer_joint(const Scenario& scenario,
                                                   const HardwareProfile& profile, int stages);

}  // namespace polyphony::sim
