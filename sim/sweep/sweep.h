// Which layout? Everything that the scenario's search allows (shared/search/space.h), answered in
// four parts, each on what the one before leaves:
//   screening    closed-form memory and bound of all combinations, unit by unit
//                (sim/sweep/screening.h); in a space too large for that, first of a thin one, whose
//                best says what is not worth combining
//   estimating   folded Programs, the most promising first (sim/sweep/contest.h), by placement
//   climbing     from the best of each placement to better neighbours: what the space leaves open
//   simulating   the best of each placement, and the next few, whole
// The answer is proven where `gaps` are zero: no combination of the lists has a smaller estimate, splits
// and ranges of recomputation, of which only some are tried, aside; a gap of 2 % says that one could be
// that much faster. The first `compared`, and all within the profile's stated error of the best, are set
// beside it: the interval of the difference, and P(faster than the best) (shared/chance/belief.h). Tied:
// that interval holds zero. Of the tied, the simplest within 2 % of the best is named.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/sweep/candidate.h"
#include "sim/sweep/contest.h"

namespace polyphony::sim {

struct SweepOptions {
  int jobs = 2;
  std::size_t at_least = 3;   // simulated candidates per placement
  double effort = 1;          // of the work that is done where nothing is proven: twice, half
  bool runnable = false;      // only what the executor can run
  int cores = 0;              // of this machine, where the search is about it; 0: not judged
  Bytes memory{};             // free for the search's workers together; 0: not judged
  std::size_t compared = 32;  // with the best, itself included; and the best of each placement
  std::size_t ranked = 256;   // candidates in the answer; and the best of each placement
  Predictor predictor = Predictor::simulate;
  KnownAnswers* known = nullptr;  // answers from before, and where new ones go
  Shards shard;                   // of the space: this part alone
  std::function<bool()> stopped;  // to end with what is known, when it says so
  ShowProgress progress;
};

struct SetBeside {
  std::string name;
  Candidate candidate;
};

// Of Sweep::tied_by: no parameter says it.
inline constexpr const char* kModelMisses = "what the model misses";

struct Sweep {
  std::string profile, stack;   // their names
  std::string ranks = "ranks";  // what the cluster's ranks are: "GPUs" or "ranks"
  double stated_error = 0;      // and its step_error
  Footing footing = Footing::stated;
  std::vector<Candidate> ranked;  // fastest first
  std::vector<SetBeside> baselines;
  std::vector<Rejection> rejected;  // illegal combinations
  double combinations = 0;          // of the whole space
  std::int64_t legal = 0;           // looked at one by one
  std::int64_t too_large = 0;       // do not fit in memory
  Candidate smallest_misfit;        // of those, the one that needs least
  std::int64_t beaten = 0;          // fit, but their bound rules them out
  std::int64_t estimated = 0, simulated = 0;
  std::map<Placement, double> gaps;  // share of its best that an unseen layout could be faster by
  std::string not_runnable;          // why nothing is, where that was asked for
  std::vector<std::string> failed;   // work that broke: reason
  std::size_t tied = 0;              // candidates, the best included
  // Position of the simplest of them: the fewest kinds of parallelism, sharding and recomputation
  // among those whose step is within 2 % of the best.
  std::size_t simplest = 0;
  // What the order of the tied hangs on: parameters of the profile (by their keys) or what no
  // parameter says, and its share of the variance of their differences from the best, largest first.
  std::vector<std::pair<std::string, double>> tied_by;
  // One sentence a part: where the best layout of each other placement loses its time against the
  // winner.
  std::vector<std::string> why;
  // No layout keeps the search's memory margin: these were searched without one.
  bool over_margin = false;
  bool stopped = false;            // before all was done
  std::vector<std::string> notes;  // what a reader should know of the answer
};

Sweep sweep(const Scenario& scenario, const HardwareProfile& profile, const SweepOptions& options);

// Of all that the answers of a sweep depend on: which journal is whose.
std::string question_digest(const Scenario& scenario, const HardwareProfile& profile);

}  // namespace polyphony::sim
