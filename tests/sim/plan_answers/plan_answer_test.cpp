// Answers of `polyphony plan` about stages: costs, memory, other splits; assignment of stages to
// modules.
#include "sim/plan_answers/plan_answer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "shared/check/check.h"
#include "shared/hardware/devices.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/bound.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/pages/plan_page.h"
#include "sim/prediction/figures.h"
#include "sim/shown/plan_text.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/shared/support/schema_validator.h"

namespace polyphony::tests {
namespace {

using namespace sim;

// 4 vision and 6 language blocks on 3 stages, the encoder and the language model frozen.
Scenario chain_of_three() {
  Scenario scenario = examples::small_on_cpu(3, 8);
  scenario.model.modules[0].trainable = scenario.model.modules[2].trainable = Trainable::frozen;
  ModuleLayout grid;
  grid.pp = grid.ranks = 3;
  scenario.layout = Layout{.modules = {3, grid}, .microbatches = 4};
  return scenario;
}

PlanAnswer answered(const Scenario& scenario) {
  return std::get<PlanAnswer>(answer_plan(scenario, *shipped_profile(scenario.cluster)));
}

}  // namespace

TEST_CASE("the stages of a plan add up, and the most expensive rank is the bottleneck") {
  const Scenario scenario = chain_of_three();
  const PlanAnswer answer = answered(scenario);
  REQUIRE(answer.stages.size() == 3);
  REQUIRE(answer.splits.size() == 1);
  const PlannedSplit& split = answer.splits.front();
  CHECK(split.branch == "vision + language");
  CHECK_FALSE(split.given);
  CHECK(std::accumulate(split.blocks.begin(), split.blocks.end(), 0) == 4 + 6);
  CHECK(answer.stages.front().layers.find("vision") == 0);
  CHECK(answer.stages.front().name.find("vision stage 0") == 0);
  CHECK(answer.stages.front().words.find("vision input, block") == 0);
  CHECK(answer.stages.back().name == "language stage 2");
  // The last of its 6 blocks, from 0.
  CHECK(answer.stages.back().words.ends_with("5, output head"));
  CHECK(answer.stages.front().forward > Seconds(0));
  // Nothing before the projector is trained; everything after it computes gradients.
  CHECK(answer.stages.back().backward > Seconds(0));
  Seconds most{};
  for (const PlannedStage& stage : answer.stages)
    most = std::max(most, stage.forward + stage.backward);
  CHECK(split.bottleneck_time >= most);  // it also waits for messages
  CHECK(split.mean <= split.bottleneck_time);
  REQUIRE(split.next);
  CHECK_FALSE(split.better);
  CHECK(split.next->blocks != split.blocks);
  CHECK(split.next->bottleneck_time >= split.bottleneck_time);
  REQUIRE(split.boundaries.size() == 2);
  for (const PlannedSplit::Boundary& boundary : split.boundaries)
    for (const auto& moved : {boundary.earlier, boundary.later})
      if (moved) CHECK(moved->bottleneck_time >= split.next->bottleneck_time);
}

TEST_CASE("layers that are sharded one by one are named as one range") {
  Scenario scenario = chain_of_three();
  ModuleLayout grid;
  grid.ranks = 3;
  grid.shard = Shard::full;
  scenario.data.global_batch = 9;
  scenario.layout = Layout{.modules = {3, grid}, .microbatches = 3};
  const PlanAnswer answer = answered(scenario);
  REQUIRE(answer.stages.size() == 1);
  CHECK(answer.stages.front().name == "vision stage 0 + language stage 0");
  CHECK(answer.stages.front().words.ends_with("language embedding, blocks 0-5, output head"));
}

TEST_CASE("the memory of a plan's stages equals the predicted memory") {
  const Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const auto outcome =
      predict(scenario, *scenario.layout, typical_batch(scenario), profile, Predictor::estimate);
  Bytes most{};
  const PlanAnswer answer = answered(scenario);
  for (const PlannedStage& stage : answer.stages) most = std::max(most, stage.memory);
  CHECK(most == figures(scenario, std::get<Prediction>(outcome)).peak_memory);
}

TEST_CASE("a plan with an unaware balance shows the split of an aware one") {
  Scenario scenario = chain_of_three();
  const PlannedSplit aware = answered(scenario).splits.front();
  scenario.layout->balance = Balance::unaware;
  const PlanAnswer answer = answered(scenario);
  CHECK(answer.layout.find("balance unaware") != std::string::npos);
  const PlannedSplit& split = answer.splits.front();
  REQUIRE(split.better);
  CHECK(split.better->blocks == aware.blocks);
  CHECK(split.better->bottleneck_time == aware.bottleneck_time);
  CHECK(split.bottleneck_time > aware.bottleneck_time);
  CHECK_FALSE(split.next);
  // The same for a split that the layout states.
  scenario.layout->balance = Balance::aware;
  scenario.layout->modules.back().blocks = {1, 1, 8};
  CHECK(answered(scenario).splits.front().given);
  CHECK(answered(scenario).splits.front().better->blocks == aware.blocks);
}

TEST_CASE("answers of plan conform to their schema, and are printed and drawn") {
  const auto accepts = [](const std::string& schema, const nlohmann::json& answer) {
    const nlohmann::json root = nlohmann::json::parse(schema);
    return test::SchemaValidator(root).accepts(answer, root);
  };
  Scenario scenario = chain_of_three();
  const PlanAnswer answer = answered(scenario);
  nlohmann::json json = to_json(answer);
  CHECK(accepts(plan_schema(), json));
  json["splits"][0].erase("dearest_seconds");
  CHECK_FALSE(accepts(plan_schema(), json));
  CHECK(split_text(answer.splits.front(), Bytes(1)).find("does not fit") != std::string::npos);
  const std::string split = split_text(answer.splits.front(), Bytes{});
  for (const char* text : {"between stages", "one block moved to the earlier",
                           "Next best split: ", " blocks a stage; its slowest stage takes "})
    CHECK(split.find(text) != std::string::npos);
  const std::string page = traces::to_html(plan_page(answer, "s.json"));
  for (const char* text : {"<svg", "stage 2, ranks 2", "Next best split", "0 and 1"})
    CHECK(page.find(text) != std::string::npos);
  scenario.layout.reset();
  CHECK(accepts(plan_schema(), to_json(answered(scenario))));
  const auto joint =
      std::get<JointAnswer>(answer_joint(scenario, *shipped_profile(scenario.cluster), 3));
  CHECK(accepts(joint_schema(), to_json(joint)));
  CHECK(joint_text(joint).find("unaware") != std::string::npos);
}

// Returns all splits of this number of blocks into this number of stages.
std::vector<std::vector<int>> all_splits(int blocks, int stages) {
  if (stages == 1) return {{blocks}};
  std::vector<std::vector<int>> all;
  for (int first = 1; first <= blocks - (stages - 1); ++first)
    for (std::vector<int> rest : all_splits(blocks - first, stages - 1)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  return all;
}

Seconds slowest_stage(const PlanAnswer& answer) {
  Seconds most{};
  for (const PlannedSplit& split : answer.splits) most = std::max(most, split.bottleneck_time);
  for (const PlannedStage& stage : answer.stages)
    most = std::max(most, stage.forward + stage.backward);
  return most;
}

// Every assignment of stages to a vision and a language module, each split as in its own plan.
TEST_CASE("stages are assigned so that the bottleneck over all modules is minimal") {
  Scenario scenario = examples::small_on_cpu(6, 8);
  scenario.model.modules[0].trainable = Trainable::frozen;
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  for (const Balance balance : {Balance::aware, Balance::unaware}) {
    const auto found = std::get<JointSplit>(joint_split(scenario, profile, 6, balance));
    CHECK_FALSE(check_layout(scenario, found.layout));
    CHECK(found.layout.modules[0].pp + found.layout.modules[2].pp == 6);
    CHECK(found.layout.balance == balance);
  }
  const auto dealt = std::get<JointSplit>(joint_split(scenario, profile, 6, Balance::aware));
  Seconds least(1e300);
  for (int vision = 1; vision <= 4; ++vision) {
    Scenario tried = scenario;
    Layout layout = dealt.layout;
    for (ModuleLayout& grid : layout.modules) grid.blocks.clear();
    for (const std::size_t m : {0, 1}) layout.modules[m].pp = layout.modules[m].ranks = vision;
    layout.modules[2].pp = layout.modules[2].ranks = 6 - vision;
    layout.modules[2].first_rank = vision;
    tried.layout = layout;
    least = std::min(least, slowest_stage(answered(tried)));
  }
  CHECK(dealt.most().count() == doctest::Approx(least.count()));
  // Too little memory for the best one: compared with all assignments and splits that fit.
  Screen screen(scenario, profile, typical_batch(scenario));
  Scenario tight = scenario;
  tight.cluster.device.memory = Bytes(screen.footprint(dealt.layout).memory.value - 1);
  const auto fitting = std::get<JointSplit>(joint_split(tight, profile, 6, Balance::aware));
  CHECK(screen.footprint(fitting.layout).memory <= tight.cluster.device.memory);
  CHECK(fitting.most() > dealt.most());
  Seconds least_fitting(1e300);
  for (int vision = 1; vision <= 4; ++vision)
    for (const std::vector<int>& seeing : all_splits(4, vision))
      for (const std::vector<int>& saying : all_splits(6, 6 - vision)) {
        Scenario tried = tight;
        Layout layout = dealt.layout;
        for (const std::size_t m : {0, 1}) layout.modules[m].pp = layout.modules[m].ranks = vision;
        layout.modules[2].pp = layout.modules[2].ranks = 6 - vision;
        layout.modules[2].first_rank = vision;
        layout.modules[0].blocks = seeing;
        layout.modules[2].blocks = saying;
        tried.layout = layout;
        if (screen.footprint(layout).memory > tight.cluster.device.memory) continue;
        least_fitting = std::min(least_fitting, slowest_stage(answered(tried)));
      }
  CHECK(fitting.most().count() == doctest::Approx(least_fitting.count()));
  // Nothing fits: the same answer as without a memory limit.
  tight.cluster.device.memory = Bytes(1);
  CHECK(std::get<JointSplit>(joint_split(tight, profile, 6, Balance::aware)).layout ==
        dealt.layout);
  // With 10 blocks, an eleventh stage would be empty; 6 ranks cannot be divided into 4 stages.
  CHECK(std::holds_alternative<Infeasible>(joint_split(scenario, profile, 4, Balance::aware)));
  scenario.cluster.ranks_per_node = 11;
  CHECK(std::holds_alternative<Infeasible>(joint_split(scenario, profile, 11, Balance::aware)));
}

}  // namespace polyphony::tests
