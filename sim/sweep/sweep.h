// Searches for the fastest layout among all that the scenario's search allows
// (shared/search/space.h), in four phases, each on the results of the one before:
//   screening    closed-form memory and lower bound of all combinations (sim/sweep/screening.h). A
//                large space is preceded by a reduced one, whose best times prune combinations
//   estimating   folded Programs, most promising first, per placement (sim/sweep/contest.h)
//   climbing     local search from the best of each placement, over what the space leaves open
//   simulating   whole Programs of the best few of each placement
//
// If a placement's gap is zero, its best layout is proven: no combination of the listed values has
// a smaller estimate. (Stage splits and ranges of recomputed blocks are excepted, because only some
// are tried.) A gap of 2 % means that an unseen layout could be up to 2 % faster.
//
// For a trainer (SweepOptions::target), the search is repeated among the layouts that it can run;
// predictions of the first search are not made again.
//
// The first `compared` candidates, and all within the profile's stated error of the best, are
// compared with it: a 90 % interval of the difference, and P(faster than the best)
// (shared/chance/belief.h). Candidates are tied with the best if the interval contains zero. Of the
// tied ones whose step is within 2 % of the best, the simplest is reported.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/candidate.h"
#include "sim/sweep/contest.h"

namespace polyphony::sim {

// A trainer that must be able to run the answer.
struct SweepTarget {
  std::string name;   // for notes
  RunnableForm form;  // absent: any layout will do
  // Returns the scenario with its search restricted to what the trainer may run: all that `form`
  // accepts, and little else. Absent: the scenario's own search is.
  std::function<Scenario(Scenario)> restricted;
};

struct SweepOptions {
  int jobs = 2;
  std::size_t at_least = 3;   // simulated candidates per placement
  double effort = 1;          // scales the search budgets: 2 is twice the default
  bool runnable = false;      // search only layouts that the executor can run
  SweepTarget target;         // rank only layouts that this trainer can run
  int cores = 0;              // of this machine, if the scenario runs on it; 0: not checked
  Bytes memory{};             // free memory for all threads together; 0: not checked
  std::size_t compared = 32;  // candidates compared with the best, plus the best of each placement
  std::size_t ranked = 256;   // candidates in the answer, plus the best of each placement
  Predictor predictor = Predictor::simulate;
  KnownAnswers* known = nullptr;  // cache of answers, read and extended
  SpacePart part;                 // screen and estimate only this part of the space
  std::function<bool()> stopped;  // returns true to end early, with the results so far
  ShowProgress progress;
};

// A baseline that the ranking is compared with (sim/sweep/baselines.h).
struct BaselineResult {
  std::string name;
  Candidate candidate;
};

// Name used in Sweep::tied_by for the errors of the model that no profile parameter describes.
inline constexpr const char* kModelMisses = "what the model misses";

struct Sweep {
  std::string profile, stack;   // names of the hardware profile and the software stack
  std::string ranks = "ranks";  // what the cluster's ranks are called: "GPUs" or "ranks"
  double stated_error = 0;      // step_error of the profile
  Footing footing = Footing::stated;
  std::vector<Candidate> ranked;  // fastest first
  // With SweepOptions::target: the fastest layout of any trainer, if that one cannot run it and it
  // is faster than all that it can.
  std::optional<Candidate> beyond;
  // The target can run none that fits: `ranked` are any trainer's, as if there were no target.
  bool none_runs = false;
  std::vector<BaselineResult> baselines;
  std::vector<Rejection> rejected;  // illegal combinations
  double combinations = 0;          // number of combinations in the whole space
  std::int64_t legal = 0;           // legal combinations that were checked one by one
  // Combinations that do not fit in memory, and combinations that are ruled out by a lower bound of
  // their step. Groups are counted whole, unchecked, so that neither is a part of `legal`
  // (shared/search/shortlist.h).
  std::int64_t too_large = 0, pruned = 0;
  Candidate smallest_too_large;  // of those checked one by one, the one that needs least memory
  std::int64_t estimated = 0, simulated = 0;
  std::map<Placement, double> gaps;  // fraction by which an unseen layout could beat the best
  std::string not_runnable;          // why the executor can run none, if `runnable` was set
  std::vector<std::string> failed;   // error messages of failed tasks
  std::size_t tied = 0;              // number of tied candidates, including the best
  // Position of the simplest tied candidate: the fewest kinds of parallelism, sharding and
  // recomputation among those whose step is within 2 % of the best.
  std::size_t simplest = 0;
  // What determines the order of the tied candidates: parameters of the profile (by key), or
  // kModelMisses; each with its share of the variance of the differences from the best, largest
  // first.
  std::vector<std::pair<std::string, double>> tied_by;
  // For each other placement, one sentence: where its best layout loses time compared with the
  // fastest layout.
  std::vector<std::string> why;
  // No layout keeps the search's memory margin: these were searched without one.
  bool over_margin = false;
  bool stopped = false;            // ended early
  std::vector<std::string> notes;  // remarks on the answer, for the user
};

// Runs the search.
Sweep sweep(const Scenario& scenario, const HardwareProfile& profile, const SweepOptions& options);

// Returns what a candidate is ranked by: its step, or with `by_p95` the 95th percentile, if known.
Seconds measure_of(const Candidate& candidate, bool by_p95);

// Returns a digest of everything that the answers of a sweep depend on. It tells whether a journal
// belongs to this scenario and profile.
std::string question_digest(const Scenario& scenario, const HardwareProfile& profile);

}  // namespace polyphony::sim
