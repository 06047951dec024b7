// Random legal layouts, folded and unfolded: how far their steps and worst memory are apart.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "shared/cost/cost_model.h"
#include "shared/graph/memory.h"
#include "shared/hardware/devices.h"
#include "shared/lower/fold.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/search/random_layout.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

struct Found {
  double step = 0, memory = 0;
};

Found predicted(const Scenario& scenario, const Layout& layout, const Plan& plan,
                const Batch& batch) {
  const HardwareProfile profile = *find_profile(default_profile("H100"));
  const Program program = lower(scenario, layout, plan, batch, StepKind::train, profile.stack);
  const Compiled compiled = std::get<Compiled>(compile(program));
  const CostTable costs = price(program, compiled, scenario.cluster, profile);
  const Estimate step = estimate(program, compiled, costs);
  Found found{step.step().count(), 0};
  for (const RankMemory& rank : predict_memory(program, step.timeline))
    found.memory = std::max(found.memory, static_cast<double>(rank.peak.value));
  return found;
}

// ViT-H's width (arXiv 2010.11929) in front of Llama-3.2-1B's, on two nodes.
const char* kEqual = R"("images": {"per_sample": 2}, "text": {"tokens": 1024}, "global_batch": 64)";
const char* kVaried = R"x("images": {"per_sample": "uniform(1,6)"},
    "text": {"tokens": "lognormal(6.5,0.6,64,4096)"}, "global_batch": 256)x";

Scenario small_vlm(const std::string& data) {
  return read_scenario(R"({"polyphony": 1, "about": "Sizes chosen for speed. Source: none.",
      "model": {"vision": {"layers": 8, "hidden": 1280, "heads": 16, "ffn": 5120, "patch": 14,
                           "image_size": 224},
                "projector": {"from": "vision", "merge": "2x2"},
                "language": {"from": ["projector"], "layers": 16, "hidden": 2048, "heads": 32,
                             "kv_heads": 8, "ffn": 8192, "vocab": 128256}},
      "cluster": {"node": "hgx-h100", "nodes": 2, "nic": "400Gbps"},
      "data": {"source": "synthetic", )" +
                           data + R"(},
      "training": {"precision": "bf16"}})",
                       "random.json", test::file_text);
}

}  // namespace

TEST_CASE("folded as unfolded: random layouts") {
  const Scenario scenario = small_vlm(kEqual);
  const Batch batch = typical_batch(scenario);
  std::vector<double> steps, memories;
  int drawn = 0;
  for (std::uint64_t seed = 1; steps.size() < 120; ++seed) {
    const auto layout = random_layout(scenario, seed);
    if (!layout) continue;
    ++drawn;
    const Plan plan = make_plan(scenario, *layout);
    const auto outcome = fold(scenario, *layout, plan, batch);
    if (!std::holds_alternative<Folded>(outcome)) continue;
    const Folded& kept = std::get<Folded>(outcome);
    const Found folded = predicted(scenario, *layout, kept.plan, kept.batch),
                whole = predicted(scenario, *layout, plan, batch);
    steps.push_back(std::abs(folded.step / whole.step - 1));
    memories.push_back(std::abs(folded.memory / whole.memory - 1));
    CAPTURE(seed);
    CAPTURE(describe(scenario.model, *layout));
    CHECK(steps.back() <
          (layout->modules.back().dp() == 5 ? 0.05 : 2e-3));  // lanes of 12 or 13 samples
    CHECK(memories.back() < 0.08);
  }
  std::sort(steps.begin(), steps.end());
  std::sort(memories.begin(), memories.end());
  MESSAGE("of " << drawn << " " << steps.size() << " folded; step: median " << steps[60]
                << ", 90 % " << steps[108] << ", worst " << steps.back() << "; memory: 90 % "
                << memories[108] << ", worst " << memories.back());
  CHECK(steps[108] < 1e-6);
  CHECK(memories[108] < 1e-6);
}

// The busiest lane of the step represents all. Lanes that wait for the busiest one of every
// microbatch, as fully sharded ones do, wait longer.
TEST_CASE("lanes whose samples differ, folded to the busiest: a low estimate") {
  const Scenario scenario = small_vlm(kVaried);
  const Batch batch = typical_batch(scenario);
  std::vector<double> steps, memories;
  for (std::uint64_t seed = 1; steps.size() < 30; ++seed) {
    const auto layout = random_layout(scenario, seed);
    if (!layout) continue;
    const Plan plan = make_plan(scenario, *layout);
    CHECK(std::holds_alternative<Infeasible>(fold(scenario, *layout, plan, batch)));
    const auto outcome = fold(scenario, *layout, plan, batch, Lanes::busiest);
    if (!std::holds_alternative<Folded>(outcome)) continue;
    const Folded& kept = std::get<Folded>(outcome);
    const Found folded = predicted(scenario, *layout, kept.plan, kept.batch),
                whole = predicted(scenario, *layout, plan, batch);
    steps.push_back(folded.step / whole.step - 1);
    memories.push_back(folded.memory / whole.memory - 1);
    CAPTURE(seed);
    CAPTURE(describe(scenario.model, *layout));
    CHECK(steps.back() > -0.12);
    CHECK(steps.back() < 1e-3);
    CHECK(std::abs(memories.back()) < 0.01);
  }
  std::sort(steps.begin(), steps.end());
  std::sort(memories.begin(), memories.end());
  MESSAGE("of 30 steps: least " << steps[0] << ", 10 % " << steps[3] << ", median " << steps[15]
                                << ", 90 % " << steps[26] << ", most " << steps[29]
                                << "; memory: least " << memories[0] << ", median " << memories[15]
                                << ", most " << memories[29]);
  CHECK(steps[15] > -1e-6);
}

}  // namespace polyphony
