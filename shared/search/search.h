// The layouts a search looks at: every legal combination of Scenario::search, absent lists filled
// with what model and cluster allow.
//   tp              powers of two that divide a domain (tensor parallelism beyond is left to
//   layouts written by hand) pp              divisors of the remaining ranks, up to 64, that are
//   powers of two or leave a dp that is one dp              what remains; a given list keeps only
//   its values microbatch      powers of two, up to a lane's share of the batch recompute none and
//   full; shard none and optimizer; schedule 1f1b; the encoder takes the language module's unless
//   it has a list encoder         homogeneous: the language grid; colocated: pp 1, its own tp, in
//   1, 2, 4 or 8 parts a step before a
//                   pipeline; non-colocated: its own grid on the first ranks, a power of two
//                   of them (whole nodes where there are several)
// All ranks of the cluster are used. Order: the loops' own, so that the same scenario gives the
// same list. Screening them: shared/search/bound.h.
#pragma once

#include <string>
#include <vector>

#include "shared/model/layout.h"
#include "shared/scenario/scenario.h"
#include "shared/search/bound.h"

namespace polyphony {

// Combinations refused for one reason; numbers inside the reason may differ, `example` is the
// first.
struct Rejection {
  Placement placement = Placement::homogeneous;
  std::string example;
  int count = 0;
  bool operator==(const Rejection&) const = default;
};

// `rejected`, when given, receives the refused combinations in order of first appearance. Without
// Scenario::search: all defaults.
std::vector<Layout> candidates(const Scenario& scenario,
                               std::vector<Rejection>* rejected = nullptr);

}  // namespace polyphony
