// Pipeline stages dealt to modules that each have a pipeline on ranks of their own, encoders as
// branches before the language module: of all ways to deal so many stages, and to split each module
// over its own, the one whose dearest stage of all is the cheapest of those that fit in the devices'
// memory. Exact for given tensor- and context-parallel ranks, but for messages, which are those of ranks
// that begin a node; what the branches' fills and drains add to a step is not looked at.
//   Memory, as shared/screen/stage_memory.h counts it: a deal that does not fit, split by time, is split
//   as shared/split/balanced_plan.h does; after it only deals are looked at that give the module of
//   the worst rank more stages. Where none fits it is as if all did. Balance::unaware does not look.
// Source: own.
#pragma once

#include <variant>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

struct JointSplit {
  Layout layout;  // non-colocated, split; nobody has checked it
  std::vector<Seconds>
      dearest;  // by ModuleId: of its stages, of a mean microbatch; projectors: none
  Seconds most() const;
};

// All stages have as many ranks. Of the scenario's layout, where it has one: each module's degrees
// and what it recomputes and shards, how many samples a microbatch has; else one rank computes one
// sample. `balance`: by which costs it is chosen; `dearest` is what it then costs. Infeasible: too
// many stages, or too few, or ranks that they do not divide.
std::variant<JointSplit, Infeasible> joint_split(const Scenario& scenario,
                                                 const HardwareProfile& profile, int stages,
                                                 Balance balance);

}  // namespace polyphony
