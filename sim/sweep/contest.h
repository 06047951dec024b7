// The second part of a sweep: candidates and what is known of them, sharpened one after another.
//   A candidate is waiting (its bound is known), estimated, or simulated. Each predictor's answer is
//   at least the one before, so that whoever is waiting above the best known is beaten.
//   estimate_best   takes first what promises most: its bound times what estimates were over bounds
//                   among its kind so far. What turns out not to fit is tried again, recomputing more
//                   (shared/search/least_recompute.h). Where it ends before all that wait are beaten, the best
//                   known may be missed by the gap, which is said.
//   split_misfits   what is too large split by time, tried with the split that fits
//                   (shared/split/balanced_plan.h), as long as its bound promises more than the best
//   climb           from a candidate to the best of its neighbours (shared/search/neighbours.h) as
//                   long as there is a better one: what a space left to be varied, and stages'
//                   blocks.
// Work is counted in ops lowered, not in seconds, so that the same question has the same answer on
// any machine.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/sweep/candidate.h"
#include "sim/sweep/screening.h"

namespace polyphony::sim {

struct ContestOptions {
  int jobs = 2;
  Bytes memory{};  // free for the workers together; 0: not judged
  ShowProgress progress;
  std::function<bool()> stopped;  // to end with what is known
};

class Contest {
 public:
  // All must outlive it. `screen`: of the question's scenario and batch.
  Contest(const Question& question, const Space& space, Screen& screen, KnownAnswers& known,
          const ContestOptions& options);

  // Waiting from now on; what is known already stays as it is.
  void enter(const Screened& screened);
  // Until no candidate of the placement that waits can be better than the best by more than a factor of
  // 1 - `within`, or `ops` are spent.
  void estimate_best(Placement placement, std::int64_t ops, double within);
  // At most `tries` of the placement's.
  void split_misfits(Placement placement, std::size_t tries, std::int64_t ops, double within);
  // From the best of the placement, one of each kind and at most `starts` within `near` of it.
  void climb(Placement placement, std::size_t starts, double near, std::int64_t ops);
  // Best first, until the best is simulated and at least `at_least` are, or `ops` are spent (the first
  // may cost four times that, where there is memory for it; else its estimate stands).
  void simulate_best(Placement placement, std::size_t at_least, std::int64_t ops);
  // One layout, now: its position.
  std::size_t estimate(const Layout& layout);
  void add_effects(const std::vector<std::size_t>& positions);
  void add_p95(const std::vector<std::size_t>& positions);

  const std::deque<Candidate>& all() const { return candidates_; }
  // Estimated or simulated candidates that fit, by what is known of them.
  std::vector<std::size_t> ranking(Placement placement) const;
  std::vector<std::size_t> ranking() const;
  Seconds best(Placement placement) const;  // infinite: none
  // What the best known may still be beaten by, as a share of it; 0: proven the best of the space,
  // as estimates go.
  double gap(Placement placement, const std::map<Placement, Seconds>& rest) const;
  std::int64_t estimated() const { return estimated_; }
  std::int64_t simulated() const { return simulated_; }

 private:
  using Kind = std::tuple<std::size_t, Shard, ScheduleKind, Recompute>;
  struct Standing {
    Kind kind;
    bool waiting = true;
  };
  struct Ratio {
    double sum = 0;
    int count = 0;
  };
  std::size_t position(const Layout& layout, const Bound& bound, const Kind& kind);
  Kind kind_of(const Screened::Kept& kept) const;
  // Whether its predicted peak keeps the search's memory margin (Scenario::memory_limit).
  bool fits(const Candidate& c) const;
  // Estimated or simulated candidates that fit, in no order; which of two is better.
  std::vector<std::size_t> fitting() const;
  std::vector<std::size_t> fitting(Placement placement) const;
  std::function<bool(std::size_t, std::size_t)> better() const;
  bool stopped() const { return options_.stopped && options_.stopped(); }
  // Of the layouts at these positions; `saying`: what is shown, and how many were so before.
  std::vector<std::string> ask(const std::string& what, const std::vector<std::size_t>& positions,
                               const std::pair<std::string, std::int64_t>& saying,
                               const std::function<std::string(const Layout&, Bytes)>& work);
  std::int64_t estimate_all(const std::vector<std::size_t>& positions, const std::string& what);
  void recompute_more(std::size_t misfit);
  void climb_from(std::size_t start, std::int64_t& ops);
  std::vector<std::size_t> better_neighbours(std::size_t of, const Layout& layout);

  const Question question_;
  const Space& space_;
  Screen& screen_;
  KnownAnswers& known_;
  const ContestOptions options_;
  std::deque<Candidate> candidates_;
  std::deque<Standing> standings_;
  std::vector<Screened::Kept> tight_;             // too large split by time, best bound first
  std::map<std::string, std::size_t> positions_;  // by layout
  std::map<Kind, Ratio> ratios_;
  std::int64_t estimated_ = 0, simulated_ = 0;
};

}  // namespace polyphony::sim
