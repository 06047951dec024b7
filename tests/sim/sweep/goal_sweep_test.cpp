// Sweeps for a goal: variants derived by hand, and objectives compared with separate sweeps of each
// variant.
#include "sim/sweep/goal_sweep.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "shared/hardware/devices.h"
#include "sim/answer_json/answers_json.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {
namespace {

using namespace sim;

// A small model on four nodes of eight ranks, and a search space that is evaluated completely.
Scenario question(const std::string& goal) {
  return read_scenario(R"({"polyphony": 1, "model": {"language": {"preset": "llama-3.1-8b"}},
      "cluster": {"node": "hgx-h100", "nodes": 4, "nic": "400Gbps", "price": "2USD/GPUh"},
      "data": {"source": "synthetic", "text": {"tokens": 4096}, "sequence": 4096,
               "global_batch": 64},
      "training": {"precision": "bf16"},
      "search": {"language": {"tp": [1, 2, 4, 8], "pp": [1, 2], "vpp": 1, "cp": 1, "shard": ["optimizer", "full"],
                              "sp": true},
                 "schedule": "1f1b", "microbatch": [1, 2]},
      "goal": )" + goal + "}",
                       "goal.json", test::file_text);
}

SweepOptions quick() {
  SweepOptions options;
  options.predictor = Predictor::estimate;
  return options;
}

GoalSweep asked(const Scenario& scenario) {
  return sweep_for_goal(scenario, *shipped_profile(scenario.cluster), quick());
}

}  // namespace

TEST_CASE("variants: listed numbers of nodes, batches that suit rank counts") {
  CHECK(variants(question("{}")) == std::vector<Variant>{{4, 64}});
  CHECK(variants(question(R"({"nodes": [1, 2, 4]})")) ==
        std::vector<Variant>{{4, 64}, {2, 64}, {1, 64}});
  // 24 ranks are 3 · 8: of 45 to 83, 48 = 3 · 16 has more twos than 60 = 3 · 4 · 5 or 72 = 9 · 8.
  CHECK(variants(question(R"({"nodes": 3, "global_batch_within": 0.3})")) ==
        std::vector<Variant>{{3, 64}, {3, 48}});
  // Nothing divisible by 3 · 32 is near, 63 is divisible by 3 alone, 66 by 6.
  CHECK(variants(question(R"({"nodes": 3, "global_batch_within": 0.04})")) ==
        std::vector<Variant>{{3, 64}, {3, 66}});
}

TEST_CASE("dollars over nodes: the minimum over separate sweeps") {
  const Scenario scenario =
      question(R"({"objective": "dollars", "tokens": 1e11, "nodes": [1, 2, 4]})");
  const GoalSweep answer = asked(scenario);
  REQUIRE(answer.reached.size() == 3);
  double least = INFINITY;
  for (const int nodes : {1, 2, 4}) {
    const Scenario alone = of_variant(scenario, {nodes, 64});
    const Sweep own = sweep(alone, *shipped_profile(alone.cluster), quick());
    const double step = own.ranked.front().figures.step.count();
    const double lossless = 1e11 / (64 * 4096) * step * nodes * 8 * 2 / 3600;
    const auto same = std::find_if(
        answer.reached.begin(), answer.reached.end(),
        [&](const Reached& r) { return answer.sweeps[r.sweep].variant.nodes == nodes; });
    REQUIRE(same != answer.reached.end());
    CHECK(same->values[0] ==
          doctest::Approx(lossless / same->campaign->checkpoints.efficiency).epsilon(1e-5));
    CHECK(same->campaign->checkpoints.efficiency > 0.99);
    CHECK(same->campaign->checkpoints.efficiency < 1);
    least = std::min(least, same->values[0]);
  }
  CHECK(answer.reached.front().values[0] == least);
  CHECK(to_json(answer)["goal"]["points"].size() == 3);
}

TEST_CASE("days and dollars: no point of the front is dominated") {
  const GoalSweep answer =
      asked(question(R"({"objective": ["days", "dollars"], "tokens": 1e11, "nodes": [1, 2, 4]})"));
  REQUIRE(answer.reached.size() >= 2);
  for (std::size_t i = 1; i < answer.reached.size(); ++i) {
    CHECK(answer.reached[i].values[0] > answer.reached[i - 1].values[0]);
    CHECK(answer.reached[i].values[1] < answer.reached[i - 1].values[1]);
  }
  CHECK(answer.best().variant.nodes == 4);  // the fastest
}

TEST_CASE("step and memory: repeated sweeps with less memory find smaller layouts") {
  const Scenario scenario = question(R"({"objective": ["step", "memory"]})");
  const GoalSweep answer = asked(scenario);
  REQUIRE(answer.reached.size() >= 3);
  CHECK(answer.sweeps.size() >= 3);
  const Sweep whole =
      sweep(of_variant(scenario, {4, 64}), *shipped_profile(scenario.cluster), quick());
  CHECK(answer.reached.front().values[0] == whole.ranked.front().figures.step.count());
  // No candidate of any sweep is better than a point of the front in both objectives.
  for (const VariantSweep& of : answer.sweeps)
    for (const Candidate& c : of.sweep.ranked) {
      const bool covered =
          std::any_of(answer.reached.begin(), answer.reached.end(), [&](const Reached& r) {
            constexpr double kRow = 1.021;  // rows of a front are 2 % apart
            return r.values[0] <= c.figures.step.count() &&
                   r.values[1] <= kRow * static_cast<double>(c.figures.peak_memory.value);
          });
      CHECK(covered);
    }
}

TEST_CASE("tokens per second and GPU: fewer ranks win; other batches are normalized by samples") {
  const GoalSweep answer = asked(
      question(R"({"objective": "tokens_per_gpu", "nodes": [3, 4], "global_batch_within": 0.3})"));
  REQUIRE(answer.reached.size() == answer.sweeps.size());
  for (std::size_t i = 0; i < answer.reached.size(); ++i) {
    const Reached& r = answer.reached[i];
    const VariantSweep& of = answer.sweeps[r.sweep];
    CHECK(r.values[0] == doctest::Approx(4096.0 * of.variant.global_batch / of.variant.nodes / 8 /
                                         answer.candidate(r).figures.step.count()));
    if (i > 0) CHECK(r.values[0] <= answer.reached[i - 1].values[0]);
  }
}

// Images vary, so the fastest layout on the average batch need not have the smallest 95th
// percentile.
TEST_CASE("p95: layouts are ranked by the steps of varying batches") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  scenario.layout.reset();
  auto& source = std::get<SyntheticData>(scenario.data.source);
  source.images = {Distribution::Kind::uniform, 1, 3, 0, 8};
  scenario.data.sequence = 0;
  scenario.search.emplace();
  scenario.search->modules.resize(scenario.model.modules.size());
  scenario.search->placement = {Placement::homogeneous};
  scenario.goal.objectives = {Objective::p95};
  const GoalSweep answer = asked(scenario);
  REQUIRE(!answer.reached.empty());
  const std::vector<Candidate>& ranked = answer.best().sweep.ranked;
  CHECK(ranked.front().p95.has_value());
  for (std::size_t i = 1; i < ranked.size() && ranked[i].p95; ++i)
    CHECK(*ranked[i].p95 >= *ranked[i - 1].p95);
  CHECK(*ranked.front().p95 > ranked.front().estimate * 0.9);
  CHECK(answer.reached.front().values[0] == ranked.front().p95->count());
}

}  // namespace polyphony::tests
