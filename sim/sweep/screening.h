// The first part of a sweep: evaluates all combinations of a search space by closed-form memory and
// lower bound. Units of the space are listed on several threads (shared/search/shortlist.h); their
// best candidates are merged into one list.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "shared/search/shortlist.h"
#include "sim/sweep/known_answers.h"

namespace polyphony::sim {

struct Screened {
  std::vector<Listed> kept;           // best bound first
  std::map<Placement, Seconds> rest;  // least bound of the candidates not kept; absent if none
  double combinations = 0;            // of the whole space
  // Sums over all units of the counts of Shortlist.
  std::int64_t considered = 0, legal = 0, too_large = 0, pruned = 0;
  std::optional<Listed> smallest_too_large;  // of all units' Shortlist::smallest_too_large
  std::vector<Listed> may_fit_if_resplit;    // of all units, best bound first
  Rejections rejections;
  std::vector<std::string> failed;  // error messages of units whose listing failed
};

// One of `count` parts of the space, which are evaluated on different machines: the units whose
// position, modulo `count`, is `index`.
struct SpacePart {
  int index = 0, count = 1;
};

using ShowProgress = std::function<void(double share, const std::string& what)>;

// Screens the units of the lister's space that belong to `part`, on `jobs` threads. The lister must
// be of a space of the scenario.
Screened screen_space(const Scenario& scenario, Lister& lister, const ListerOptions& options,
                      KnownAnswers& known, const SpacePart& part, int jobs,
                      const ShowProgress& progress);

}  // namespace polyphony::sim
