// Is the answer of a sweep the best? Compares it with the scenario's own layout (written by hand),
// the best of many random legal layouts, and the best of hill climbing from the best twenty of
// these. These rivals share only predictors and neighbors with the sweep. They are found by folded
// estimates; the best few are simulated whole, like the answer. Not a test: scripts/bench_sweep
// runs it.
//   sweep_bench SCENARIO RANDOM JOBS      one line of JSON
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "shared/cost/layer_costs.h"
#include "shared/plan/plan.h"
#include "shared/scenario/typical_batch.h"
#include "shared/search/neighbours.h"
#include "shared/search/random_layout.h"
#include "shared/search/space.h"
#include "sim/cli/command.h"
#include "sim/prediction/need.h"
#include "sim/runner/worker_pool.h"
#include "sim/sweep/layout_numbers.h"
#include "sim/sweep/sweep.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr std::size_t kClimbers = 20;
constexpr std::size_t kSimulated = 3;  // of each rival
// Programs above this size are not simulated, which would take three minutes and some gigabytes
// each. Their estimates are used.
constexpr double kMostOps = 2.5e7;
constexpr double kBetter = 1e-4;  // as the sweep's climbs

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Found {
  Layout layout;
  double step = kInfinite;
};
bool faster(const Found& a, const Found& b) { return a.step < b.step; }

class Rival {
 public:
  Rival(const Question& question, int jobs)
      : question_(question),
        jobs_(jobs),
        space_(question.scenario),
        screen_(question.scenario, question.profile, question.batch) {}

  // Returns the best `count` layouts that are in the space, fit, and take less than `limit`.
  // Layouts whose bound is above the worst of them are not estimated.
  std::vector<Found> best_of(const std::vector<Layout>& layouts, std::size_t count, double limit) {
    std::vector<Found> open;
    const Bytes capacity = question_.scenario.cluster.device.memory;
    for (const Layout& layout : layouts)
      if (space_.allows(layout) &&
          (capacity.value == 0 || screen_.footprint(layout).memory <= capacity))
        open.push_back({layout, screen_.bound(layout).step.count()});
    std::stable_sort(open.begin(), open.end(), faster);
    std::vector<Found> best;
    for (std::size_t next = 0; next < open.size();) {
      if (best.size() == count) limit = best.back().step;
      std::vector<Found> round;
      for (; next < open.size() && round.size() < kRound && open[next].step < limit; ++next)
        round.push_back(open[next]);
      if (round.empty()) break;
      estimate(round);
      best.insert(best.end(), round.begin(), round.end());
      std::erase_if(best, [&](const Found& found) { return found.step >= limit; });
      std::stable_sort(best.begin(), best.end(), faster);
      best.resize(std::min(best.size(), count));
    }
    return best;
  }

  Found climb(Found from) {
    while (true) {
      const std::vector<Found> found =
          best_of(neighbours(question_.scenario, from.layout), 1, from.step * (1 - kBetter));
      if (found.empty()) return from;
      from = found.front();
    }
  }

  // Returns the step times in the given order: simulated, or estimated if simulation is too
  // expensive.
  json row(const Layout& layout) const {
    const bool simulate = need_of(question_.scenario, layout, {}).ops <= kMostOps;
    Candidate candidate;
    const auto answers = run_on_threads(
        1, 1,
        [&](std::size_t) {
          return simulate ? examine_candidate(question_, Predictor::simulate, layout, {})
                          : estimate_candidate(question_, layout, false, {});
        },
        [](std::size_t) {});
    adopt(answers.front(), candidate);
    json row = {{"layout", describe(question_.scenario.model, layout)}};
    if (!candidate.why_not.empty()) return row.update({{"refused", candidate.why_not}}), row;
    row["step"] = candidate.figures.step.count();
    row["gib"] = static_cast<double>(candidate.figures.peak_memory.value) / (1 << 30);
    row["fits"] = candidate.figures.fits();
    row["simulated"] = candidate.simulated;
    row["asked"] = space_.allows(layout);
    return row;
  }

  // Returns the best of the first few.
  json best_row(std::vector<Found> found) const {
    json best;
    std::stable_sort(found.begin(), found.end(), faster);
    for (std::size_t i = 0; i < std::min(found.size(), kSimulated); ++i) {
      json next = row(found[i].layout);
      if (next.value("fits", false) && (best.is_null() || next["step"] < best["step"])) best = next;
    }
    return best;
  }

 private:
  static constexpr std::size_t kRound = 24;

  void estimate(std::vector<Found>& round) {
    std::vector<std::string> keys;
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < round.size(); ++i) {
      keys.push_back(layout_numbers(at_rest(question_.scenario, round[i].layout)).dump());
      if (!known_.contains(keys[i])) open.push_back(i);
    }
    const auto answers = run_on_threads(
        jobs_, open.size(),
        [&](std::size_t i) {
          return estimate_candidate(question_, round[open[i]].layout, false, {});
        },
        [](std::size_t) {});
    for (std::size_t i = 0; i < open.size(); ++i) {
      Candidate candidate;
      adopt(answers[i], candidate);
      const bool good = candidate.why_not.empty() && candidate.figures.fits();
      known_[keys[open[i]]] = good ? candidate.figures.step.count() : kInfinite;
    }
    for (std::size_t i = 0; i < round.size(); ++i) round[i].step = known_[keys[i]];
  }

  const Question question_;
  int jobs_;
  Space space_;
  Screen screen_;
  std::map<std::string, double> known_;  // by layout
};

int bench(const std::string& path, int draws, int jobs) {
  Scenario scenario = load_scenario(path);
  const HardwareProfile profile = load_profile(scenario, {});
  const std::optional<Layout> hand = scenario.layout;
  scenario.layout.reset();
  const Batch batch = typical_batch(scenario);
  const std::vector<WorkSize> sizes = module_sizes(scenario.model, batch);
  const Question question(borrow_inputs(scenario, profile));
  Rival rival(question, jobs);
  json line = {{"scenario", path}};

  auto start = Clock::now();
  SweepOptions options;
  options.jobs = jobs;
  const Sweep answer = sweep(scenario, profile, options);
  line["seconds"] = since(start);
  line["combinations"] = answer.combinations;
  for (const auto& [placement, gap] : answer.gaps) line["gaps"][name(placement)] = gap;
  if (!answer.ranked.empty()) line["sweep"] = rival.row(answer.ranked.front().layout);
  if (hand) line["hand"] = rival.row(*hand);

  start = Clock::now();
  std::vector<Layout> drawn;
  for (int draw = 0; draw < draws; ++draw)
    if (auto layout = random_layout(scenario, static_cast<std::uint64_t>(draw)))
      drawn.push_back(std::move(*layout));
  const std::vector<Found> found = rival.best_of(drawn, kClimbers, kInfinite);
  line["random"] = rival.best_row(found);
  std::vector<Found> tops;
  for (const Found& one : found) {
    Found top = rival.climb(one);
    const auto same = [&](const Found& other) { return other.layout == top.layout; };
    if (std::none_of(tops.begin(), tops.end(), same)) tops.push_back(std::move(top));
  }
  line["climbed"] = rival.best_row(tops);
  line["rival_seconds"] = since(start);
  std::cout << line.dump() << std::endl;
  return 0;
}

}  // namespace
}  // namespace polyphony::sim

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "sweep_bench SCENARIO RANDOM JOBS\n";
    return 2;
  }
  try {
    return polyphony::sim::bench(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
