// The second part of a sweep: predicts the screened candidates, most promising first, until the
// best is found or the budget is spent.
//
// A candidate is waiting (only its lower bound is known), estimated, or simulated. Step times never
// decrease from one to the next, so waiting candidates whose bound exceeds the best known time can
// be pruned. Budgets are counted in lowered ops, not in seconds, so that the same question has the
// same answer on any machine.
//
//   estimate_best   Estimates candidates in the order of their expected time: the bound times the
//                   mean ratio of estimate to bound among similar candidates so far. Candidates
//                   that do not fit are retried with more recomputation
//                   (shared/search/least_recompute.h). If the budget ends first, gap() tells how
//                   much faster an unseen layout could be.
//   split_misfits   Retries candidates that are too large when stages are balanced by time, with a
//                   split that fits (shared/split/balanced_plan.h), while their bounds are below
//                   the best step time.
//   climb           Local search: moves from a candidate to its best neighbor
//                   (shared/search/neighbours.h) while that is faster. Varies what the space leaves
//                   open, and the blocks of pipeline stages.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/candidate.h"
#include "sim/sweep/screening.h"

namespace polyphony::sim {

// Returns the layout if it can be run (by a certain trainer, say), the nearest one that can, or
// nothing.
using RunnableForm = std::function<std::optional<Layout>(const PlanInputs& inputs, const Layout&)>;

struct ContestOptions {
  int jobs = 2;
  Bytes memory{};  // free memory for all threads together; 0: not checked
  ShowProgress progress;
  std::function<bool()> stopped;  // returns true to end early, with the results so far
  RunnableForm runnable_form;     // only layouts that it returns are predicted; absent: all are
};

class Contest {
 public:
  // All arguments must outlive the Contest. `screen` must be of the question's scenario and batch.
  Contest(const Question& question, const Space& space, Screen& screen, KnownAnswers& known,
          const ContestOptions& options);

  // Adds the screened candidates as waiting. Candidates that are already known are not changed.
  void enter(const Screened& screened);
  void enter(const Layout& layout);
  // Estimates candidates of the placement until no waiting one can be faster than the best by more
  // than the fraction `within`, or `ops` are spent.
  void estimate_best(Placement placement, std::int64_t ops, double within);
  // Tries new splits for at most `tries` candidates of the placement that are too large.
  void split_misfits(Placement placement, std::size_t tries, std::int64_t ops, double within);
  // Climbs from the best candidates of the placement: at most one of each shape
  // (ranks, tp, cp and pp of the language module), at most `starts`, and only those within the
  // fraction `near` of the best.
  void climb(Placement placement, std::size_t starts, double near, std::int64_t ops);
  // Simulates candidates, best first, until the best one and at least `at_least` are simulated, or
  // `ops` are spent. The first may cost four times `ops`; if memory does not suffice for it, its
  // estimate remains.
  void simulate_best(Placement placement, std::size_t at_least, std::int64_t ops);
  // Estimates one layout immediately, runnable or not, and returns its position in all().
  std::size_t estimate(const Layout& layout);
  // Simulates one estimated candidate, unless that costs more than `ops` times four.
  void simulate(std::size_t position, std::int64_t ops);
  // Adds effects of the profile's errors, or 95th percentiles, to the candidates at `positions`.
  void add_effects(const std::vector<std::size_t>& positions);
  void add_p95(const std::vector<std::size_t>& positions);

  const std::deque<Candidate>& all() const { return candidates_; }
  // Returns the positions of estimated or simulated candidates that fit, fastest first.
  std::vector<std::size_t> ranking(Placement placement) const;
  std::vector<std::size_t> ranking() const;
  Seconds best(Placement placement) const;  // step time of the best; infinite if there is none
  // Returns by what fraction of the best step time an unseen layout could still be faster,
  // according to the bounds. 0: the best is proven, by estimated step time. `rest`: Screened::rest.
  double gap(Placement placement, const std::map<Placement, Seconds>& rest) const;
  std::int64_t estimated() const { return estimated_; }
  std::int64_t simulated() const { return simulated_; }

 private:
  // Candidates of one kind have similar ratios of estimate to bound; those of one family, which
  // differ in sharding and recomputation, less similar ones. The shape is the placement, and of the
  // language module's grid the ranks, tp, cp and pp. The number is that of encoder microbatches.
  using Shape = std::array<int, 6>;
  using Family = std::tuple<Shape, ScheduleKind, int>;
  using Kind = std::tuple<Family, Shard, Recompute>;
  struct Standing {
    Kind kind;
    bool waiting = true;
    // With ContestOptions::runnable_form: whether it is known that it can or cannot be run; the
    // candidate that stands in its place if it cannot; and the layout that this one replaced.
    bool runnable = false, refused = false;
    std::optional<std::size_t> replacement = {};
    std::optional<Layout> replaced = {};
  };
  struct Ratio {
    double sum = 0, least = std::numeric_limits<double>::infinity();
    std::int64_t ops = 0;
    int count = 0;
  };
  std::size_t position(const Layout& layout, const Bound& bound);
  Kind kind_of(const Layout& layout) const;
  // Returns whether, by the estimates so far, a candidate of this kind with this bound takes longer
  // than `limit`. Without enough estimates of its kind, its family decides, with an allowance.
  bool too_slow(const Kind& kind, Seconds bound, double limit) const;
  // Returns whether its predicted peak keeps the search's memory margin (Scenario::memory_limit).
  bool fits(const Candidate& c) const;
  // fitting(): estimated or simulated candidates that fit, unordered. better(): compares two.
  std::vector<std::size_t> fitting() const;
  std::vector<std::size_t> fitting(Placement placement) const;
  std::function<bool(std::size_t, std::size_t)> better() const;
  bool stopped() const { return options_.stopped && options_.stopped(); }
  // Runs `work` on the layouts at these positions, on several threads, and returns the answers.
  // `saying`: the progress text, and how many were done before.
  std::vector<TaskResult<std::string>> ask(
      const std::string& what, const std::vector<std::size_t>& positions,
      const std::pair<std::string, std::int64_t>& saying,
      const std::function<std::string(const Layout&, Bytes)>& work);
  // Returns the same candidates, each replaced by its runnable form, without those that have none.
  // The others no longer wait.
  std::vector<std::size_t> runnable(const std::vector<std::size_t>& positions);
  std::int64_t estimate_all(const std::vector<std::size_t>& positions, const std::string& what);
  std::int64_t expected_ops(std::size_t at) const;
  // Simulates these and returns how many succeed; of those that fail the estimates remain.
  std::size_t simulate_all(const std::vector<std::size_t>& positions);
  void recompute_more(std::size_t misfit);
  // Returns the layout, whose stages are not stated, with stages that fit in `room` bytes or that
  // can be run; nothing if there are none.
  std::optional<Layout> fitting_form(const Layout& layout, Bytes room);
  void climb_from(std::size_t start, std::int64_t& ops);
  std::vector<std::size_t> affordable(std::vector<std::size_t> near, std::size_t from,
                                      std::int64_t ops) const;
  std::vector<std::size_t> better_neighbours(std::size_t of, const Layout& layout);

  const Question question_;
  const Space& space_;
  Screen& screen_;
  KnownAnswers& known_;
  const ContestOptions options_;
  std::deque<Candidate> candidates_;
  std::deque<Standing> standings_;
  std::vector<Listed> may_fit_if_resplit_;        // too large if split by time; best bound first
  std::map<std::string, std::size_t> positions_;  // by layout
  std::map<Kind, Ratio> ratios_;
  std::map<Family, Ratio> family_ratios_;
  std::int64_t estimated_ = 0, simulated_ = 0;
};

}  // namespace polyphony::sim
