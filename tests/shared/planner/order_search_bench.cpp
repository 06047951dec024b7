// DIP's VLM-L (arXiv 2504.14145v2, section 6):
// ViT 22B and Qwen2 72B on 8 pipeline ranks of 8 GPUs, 64 microbatches of 8,192 tokens with 0 to 48
// images of 2,704 patches. Forward FLOPs of an image's patches in all layers: 48 · (2 · 453e6 ·
// 2,704 + 4 · 2,704² · 6,144) = 126e12, of a microbatch's tokens 1,240e12; at the rates per GPU
// that follow from the paper's layer times, 187 and 310 TFLOP/s: 84 ms and 500 ms.
#include "tests/shared/planner/order_search_bench.h"

#include <cstdio>
#include <ctime>

#include "shared/planner/list_schedule.h"
#include "shared/planner/makespan_bound.h"
#include "shared/planner/order_search.h"
#include "shared/planner/segment_counts.h"
#include "shared/random.h"
#include "tests/shared/support/exact_order.h"

namespace polyphony {
namespace {

constexpr int kRanks = 8, kMicrobatches = 64, kSubMicrobatch = 12, kImages = 48;
constexpr double kImage = 0.084, kTokens = 0.5;  // seconds forward; backward twice that

StepCosts vlm_l() {
  const std::vector<int> segments =
      segment_counts({Seconds(kImage * kSubMicrobatch), Seconds(kTokens)});
  StepCosts costs{kRanks, kMicrobatches, {}, {}};
  std::vector<double> vision, language(kMicrobatches, kTokens);
  BranchCosts branches[] = {{"vision", {}, {}, {}, 1}, {"language", {}, {}, {}}};
  for (int k = 0; k < kMicrobatches; ++k) {
    const auto images = static_cast<int>(random_uniform(7, std::uint64_t(k)) * (kImages + 1));
    for (const int part : sub_microbatches(images, kSubMicrobatch)) {
      branches[0].microbatch_of.push_back(k);
      vision.push_back(kImage * part);
    }
    branches[1].microbatch_of.push_back(k);
  }
  for (std::size_t b = 0; b < 2; ++b) {
    const int stages = kRanks * segments[b];
    for (int s = 0; s < stages; ++s) {
      branches[b].rank_of_stage.push_back(s % kRanks);
      for (const double forward : b == 0 ? vision : language) {
        const Seconds part(forward / stages);
        branches[b].costs.push_back({part, part, part, Bytes(std::int64_t(part.count() * 1e9))});
      }
    }
    costs.branches.push_back(branches[b]);
  }
  return costs;
}

}  // namespace

double thousand_placements() {
  const StepCosts costs = vlm_l();
  const StageGraph graph(costs, microbatches_in_order(costs));
  ListScheduler scheduler(graph);
  const Keys keys = keys_in_turn(graph);
  ListSchedule placed;
  const int steps = 1000;
  const std::clock_t begin = std::clock();
  for (int i = 0; i < steps; ++i) scheduler.run(keys, placed);
  return double(std::clock() - begin) / CLOCKS_PER_SEC / steps / double(graph.actions) * 1000;
}

std::string optimal_small_steps() {
  std::string text;
  for (const bool apart : {false, true}) {
    int steps = 0, optimal = 0;
    for (std::uint64_t seed = 0; steps < 200; ++seed) {
      const StepCosts costs = test::small_step_costs(seed);
      if (StageGraph(costs, microbatches_in_order(costs), apart).actions > test::kSmallActions)
        continue;
      ++steps;
      const auto outcome = search_order(costs, {.placements = 30000, .apart = apart});
      const double found = std::get<FoundOrder>(outcome).makespan.count();
      if (found <= test::ExactOrder(costs, apart).solve(found + 1) * (1 + 1e-9)) ++optimal;
    }
    text += (apart ? ", in two parts " : "backwards whole ") + std::to_string(optimal) + " of " +
            std::to_string(steps);
  }
  return text;
}

std::string search_gaps(bool apart, double longest) {
  const StepCosts costs = vlm_l();
  const StageGraph graph(costs, microbatches_in_order(costs), apart);
  const double bound = makespan_bound(costs, apart).value().count();
  ListSchedule placed;
  ListScheduler(graph).run(keys_in_turn(graph), placed);
  const auto gap = [&](double makespan) {
    char text[32];
    std::snprintf(text, sizeof text, "%+.2f %%", 100 * (makespan / bound - 1));
    return std::string(text);
  };
  std::string gaps = "dual queue alone " + gap(placed.makespan);
  std::vector<double> times = {0.1, 1, 2, 10, 60, 600, 1800};
  std::erase_if(times, [&](double at) { return at > longest; });
  const std::clock_t begin = std::clock();
  double best = placed.makespan;
  std::size_t next = 0;
  const auto pass = [&](double seconds) {
    for (; next < times.size() && seconds > times[next]; ++next) {
      char text[32];
      std::snprintf(text, sizeof text, ", %g s ", times[next]);
      gaps += text + gap(best);
    }
  };
  SearchBudget budget;
  budget.apart = apart;
  budget.better = [&](Seconds makespan) { best = makespan.count(); };
  budget.stop = [&] {
    pass(double(std::clock() - begin) / CLOCKS_PER_SEC);
    return next == times.size();
  };
  const auto found = search_order(costs, budget);
  best = std::get<FoundOrder>(found).makespan.count();
  pass(2 * longest);  // the search may have ended at the bound
  return gaps;
}

}  // namespace polyphony
