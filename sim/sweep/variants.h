// What a goal lets a sweep choose beside the layout (shared/goal/goal.h): each choice is a question
// of its own.
//   nodes          those that the goal lists; all of the cluster's where it lists none
//   global batch   the scenario's; within the goal's share of it, those that suit the rank counts
//                  which a language module may have: 448 = 2⁶ · 7 ranks want a batch divisible by 7.
//                  Of each odd factor the batch with most powers of two, and of those the nearest
#pragma once

#include <vector>

#include "shared/scenario/scenario.h"

namespace polyphony::sim {

struct Variant {
  int nodes = 0, global_batch = 0;
  auto operator<=>(const Variant&) const = default;
};
// The scenario as it is written comes first where the goal allows it.
std::vector<Variant> variants(const Scenario& scenario);
// Throws InputError where the cluster cannot be cut so.
Scenario of_variant(Scenario scenario, const Variant& variant);

}  // namespace polyphony::sim
