// Distributes a number of pipeline stages over modules that each have a pipeline on ranks of their
// own, with encoders as branches before the language module. Of all distributions, and all splits
// of each module over its stages, it finds the one whose most expensive stage costs the least,
// among those that fit in the devices' memory.
//
//   The result is exact for given tensor- and context-parallel degrees, except for messages, which
//   are priced as between ranks that begin a node. The fill and drain times of the branches'
//   pipelines are not modeled.
//
//   Memory, as shared/screen/stage_memory.h counts it: a distribution that does not fit when split
//   by time is split as shared/split/balanced_plan.h does. After that, only distributions are tried
//   that give more stages to the module of the worst rank. If none fits, memory is ignored.
//   Balance::unaware ignores memory.
// Source: own.
#pragma once

#include <variant>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

struct JointSplit {
  Layout layout;  // non-colocated, split; not checked by check_layout()
  // By ModuleId: cost of its most expensive stage per mean microbatch; projectors: 0.
  std::vector<Seconds> bottleneck;
  Seconds most() const;  // of the most expensive stage of all modules
};

// Distributes `stages` stages of equal numbers of ranks. If the scenario has a layout, the degrees,
// recomputation and sharding of each module and the samples per microbatch are taken from it;
// otherwise one rank computes one sample. `balance` states by which costs the distribution is
// chosen; `bottleneck` always holds all costs. Returns Infeasible if there are too many or too few
// stages, or if they do not divide the ranks.
std::variant<JointSplit, Infeasible> joint_split(const Scenario& scenario,
                                                 const HardwareProfile& profile, int stages,
                                                 Balance balance);

}  // namespace polyphony
