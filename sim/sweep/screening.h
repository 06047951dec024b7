// The first part of a sweep: all units of a space listed in worker processes
// (shared/search/shortlist.h), their best few together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "shared/search/shortlist.h"
#include "sim/sweep/known_answers.h"

namespace polyphony::sim {

struct Screened {
  struct Kept {
    Listed listed;
    std::size_t unit = 0;  // candidates of one unit are of one kind
  };
  std::vector<Kept> kept;             // best bound first
  std::map<Placement, Seconds> rest;  // the least bound of what was not kept, where there is any
  double combinations = 0;
  std::int64_t considered = 0, legal = 0, too_large = 0, beaten = 0;
  std::optional<Listed> misfit;
  std::vector<Kept> tight;  // Shortlist::tight of all units, best bound first
  Rejections rejections;
  std::vector<std::string> failed;  // units whose worker broke
};

// One part of several, that are worked out on machines of their own.
struct Shards {
  int index = 0, count = 1;
};

using ShowProgress = std::function<void(double share, const std::string& what)>;

// `lister`: of a space of the scenario.
Screened screen_space(const Scenario& scenario, Lister& lister, const ListerOptions& options,
                      KnownAnswers& known, const Shards& shards, int jobs,
                      const ShowProgress& progress);

}  // namespace polyphony::sim
