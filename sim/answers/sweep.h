// Which layout? Lists the legal layouts, screens them by their closed-form bound and memory,
// simulates the promising ones in worker processes, ranks them.
//   A candidate is simulated as long as its bound could still beat, or tie with, the best simulated
//   one; at least `at_least` per placement. The first `compared` are set beside the best: the
//   interval of the difference, and P(faster than the best) (shared/chance/belief.h). Tied: that
//   interval holds zero; of the others, a step within the profile's stated error of the best. Of
//   the tied, the simplest is named: homogeneous before colocated before non-colocated, then fewer
//   ranks per replica.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/answers/candidate.h"

namespace polyphony::sim {

struct SweepOptions {
  int jobs = 2;
  int at_least = 3;           // simulated candidates per placement
  int at_most = 24;           // simulated candidates per placement
  bool runnable = false;      // only what the executor can run
  int cores = 0;              // of this machine, where the search is about it; 0: not judged
  Bytes memory{};             // free for the search's workers together; 0: not judged
  std::size_t compared = 32;  // with the best, itself included
  Predictor predictor = Predictor::simulate;
  std::function<void(double share, const std::string& what)> progress;
};

struct Sweep {
  std::string profile, stack;       // their names
  double stated_error = 0;          // and its step_error
  std::vector<Candidate> ranked;    // simulated ones, fastest first
  std::vector<Rejection> rejected;  // illegal combinations
  std::size_t listed = 0;           // legal layouts
  std::size_t too_large = 0;        // do not fit in memory by the closed form
  Candidate smallest_misfit;        // of those, the one that needs least
  std::size_t screened = 0;         // fit, but their bound rules them out
  std::size_t not_runnable = 0;
  std::string not_runnable_example;
  std::vector<std::string> failed;  // simulations that broke: reason
  std::size_t tied = 0;             // candidates, the best included
  std::size_t simplest = 0;         // position of the simplest of them
  // One sentence a part: where the best layout of each other placement loses its time against the
  // winner.
  std::vector<std::string> why;
  std::vector<std::string> notes;  // what a reader should know of the answer
};

Sweep sweep(const Scenario& scenario, const HardwareProfile& profile, const SweepOptions& options);

}  // namespace polyphony::sim
