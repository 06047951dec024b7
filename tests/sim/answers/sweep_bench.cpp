// Is the answer of a sweep the best? Set beside the scenario's own layout (written by hand), the best
// of many random legal layouts, and the best of hill climbing from the best twenty of those, which
// share nothing with the sweep but predictors and neighbours. Not a test: scripts/bench_sweep runs it.
//   sweep_bench SCENARIO RANDOM JOBS      one line of JSON
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "shared/cost/layer_costs.h"
#include "shared/plan/plan.h"
#include "shared/scenario/typical_batch.h"
#include "shared/search/neighbours.h"
#include "shared/search/random_layout.h"
#include "shared/search/space.h"
#include "sim/answers/sweep.h"
#include "sim/commands/command.h"
#include "sim/runner/worker_pool.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kClimbers = 20;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Found {
  Layout layout;
  double step = 1e300;
};

class Rival {
 public:
  Rival(const Question& question, int jobs)
      : question_(question),
        jobs_(jobs),
        space_(question.scenario),
        screen_(question.scenario, question.profile, question.batch) {}

  // Those that are in the space and fit, estimated.
  std::vector<Found> estimate(const std::vector<Layout>& layouts) {
    std::vector<Found> fitting;
    const Bytes capacity = question_.scenario.cluster.device.memory;
    for (const Layout& layout : layouts)
      if (space_.allows(layout) &&
          (capacity.value == 0 || screen_.footprint(layout).memory <= capacity))
        fitting.push_back({layout});
    const std::vector<std::string> answers = run_in_workers(
        jobs_, fitting.size(),
        [&](std::size_t i) { return estimate_candidate(question_, fitting[i].layout, false, {}); },
        [](std::size_t) {});
    for (std::size_t i = 0; i < fitting.size(); ++i) {
      Candidate candidate;
      read_answer(answers[i], candidate);
      if (candidate.why_not.empty() && candidate.figures.fits())
        fitting[i].step = candidate.figures.step.count();
    }
    std::stable_sort(fitting.begin(), fitting.end(),
                     [](const Found& a, const Found& b) { return a.step < b.step; });
    return fitting;
  }

  Found climb(Found from) {
    while (true) {
      std::vector<Layout> near;
      for (Layout& next : neighbours(question_.scenario, from.layout))
        if (screen_.bound(next).step.count() < from.step) near.push_back(std::move(next));
      const std::vector<Found> found = estimate(near);
      if (found.empty() || found.front().step >= from.step * (1 - 1e-4)) return from;
      from = found.front();
    }
  }

  double simulated(const Layout& layout) const {
    Candidate candidate;
    const std::vector<std::string> answers = run_in_workers(
        1, 1,
        [&](std::size_t) { return examine_candidate(question_, Predictor::simulate, layout, {}); },
        [](std::size_t) {});
    read_answer(answers.front(), candidate);
    return candidate.why_not.empty() ? candidate.figures.step.count() : -1;
  }

 private:
  const Question question_;
  int jobs_;
  Space space_;
  Screen screen_;
};

json row(const Rival& rival, const Scenario& scenario, const Found& found) {
  if (found.layout.modules.empty()) return {};
  return {{"layout", describe(scenario.model, found.layout)},
          {"step", rival.simulated(found.layout)}};
}

int bench(const std::string& path, int draws, int jobs) {
  Scenario scenario = load_scenario(path);
  const HardwareProfile profile = load_profile(scenario, {});
  const std::optional<Layout> hand = scenario.layout;
  scenario.layout.reset();
  const Batch batch = typical_batch(scenario);
  const std::vector<WorkSize> sizes = module_sizes(scenario.model, batch);
  const Question question{scenario, profile, batch, sizes};
  Rival rival(question, jobs);
  json line = {{"scenario", path}};

  auto start = Clock::now();
  SweepOptions options;
  options.jobs = jobs;
  const Sweep answer = sweep(scenario, profile, options);
  line["seconds"] = since(start);
  line["combinations"] = answer.combinations;
  Found best;
  if (!answer.ranked.empty())
    best = {answer.ranked.front().layout, answer.ranked.front().figures.step.count()};
  line["sweep"] = row(rival, scenario, best);
  if (hand) line["hand"] = row(rival, scenario, {*hand, 0});

  start = Clock::now();
  std::vector<Layout> drawn;
  for (int draw = 0; draw < draws; ++draw)
    if (auto layout = random_layout(scenario, static_cast<std::uint64_t>(draw)))
      drawn.push_back(std::move(*layout));
  std::vector<Found> found = rival.estimate(drawn);
  if (!found.empty()) line["random"] = row(rival, scenario, found.front());
  found.resize(std::min(found.size(), kClimbers));
  Found highest;
  for (const Found& one : found)
    if (Found top = rival.climb(one); top.step < highest.step) highest = std::move(top);
  line["climbed"] = row(rival, scenario, highest);
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
