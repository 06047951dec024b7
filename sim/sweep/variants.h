// The variants of a scenario that a goal (shared/goal/goal.h) allows a sweep to choose, in addition
// to the layout. Each variant is searched separately.
//   nodes          the numbers that the goal lists; all nodes of the cluster if it lists none
//   global batch   the scenario's, and others within the goal's fraction of it that suit the rank
//                  counts a language module may have: 448 = 2⁶ · 7 ranks need a batch divisible by
//                  7. For each odd factor, the batch with most powers of two, and of those the
//                  nearest to the scenario's
#pragma once

#include <vector>

#include "shared/scenario/scenario.h"

namespace polyphony::sim {

struct Variant {
  int nodes = 0, global_batch = 0;
  auto operator<=>(const Variant&) const = default;
};
// Returns the allowed variants. The scenario as written is first if the goal allows it.
std::vector<Variant> variants(const Scenario& scenario);
// Returns the scenario with the variant's nodes and batch. Throws InputError if the cluster cannot
// be reduced to that number of nodes.
Scenario of_variant(Scenario scenario, const Variant& variant);

}  // namespace polyphony::sim
