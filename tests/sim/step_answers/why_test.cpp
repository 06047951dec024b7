// answer_why(): where the time of a step goes, and which changes are suggested.
#include "sim/step_answers/why.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "shared/check/check.h"
#include "shared/hardware/devices.h"
#include "shared/scenario/typical_batch.h"
#include "shared/search/neighbours.h"
#include "sim/answer_json/answers_json.h"
#include "sim/step_answers/layout_change.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {
namespace {

using namespace sim;

WhyAnswer answered(const Scenario& scenario, const Layout& layout, WhyOptions options = {}) {
  options.jobs = 2;
  return std::get<WhyAnswer>(answer_why(scenario, layout, typical_batch(scenario),
                                        *shipped_profile(scenario.cluster), options));
}

Seconds predicted(const Scenario& scenario, const Layout& layout, Predictor predictor) {
  return std::get<Prediction>(predict(scenario, layout, typical_batch(scenario),
                                      *shipped_profile(scenario.cluster), predictor))
      .step();
}

}  // namespace

TEST_CASE("parts and idle times add up to the step on every rank") {
  for (const char* file : {"tiny", "tiny_colocated", "tiny_uneven", "tiny_frozen", "rehearse_8"})
    for (const Shard shard : {Shard::none, Shard::optimizer, Shard::full}) {
      const Scenario scenario = test::scenario_at(std::string("scenarios/") + file + ".json");
      Layout layout = *scenario.layout;
      for (ModuleLayout& grid : layout.modules)
        if (grid.dp() > 1) grid.shard = shard;
      if (check_layout(scenario, layout)) continue;
      INFO(file << " " << name(shard));
      const WhyAnswer answer = answered(scenario, layout);
      const StepAnswer& now = answer.now;
      REQUIRE(answer.idle.size() == now.parts.size());
      for (std::size_t r = 0; r < now.parts.size(); ++r) {
        Seconds sum{};
        for (const traces::Part part : {traces::Part::forward, traces::Part::backward,
                                        traces::Part::recompute, traces::Part::optimizer})
          sum += now.parts[r][static_cast<std::size_t>(part)];
        for (const Seconds spent : answer.idle[r]) {
          CHECK(spent.count() >= -1e-12);
          sum += spent;
        }
        CHECK(sum.count() == doctest::Approx(now.figures.step.count()).epsilon(1e-9));
      }
      const auto at = [&](traces::Idle idle) {
        return answer.idle[now.busiest.value][static_cast<std::size_t>(idle)].count();
      };
      CHECK(at(traces::Idle::imbalance) == doctest::Approx(0));
    }
}

TEST_CASE("idle time for bridges appears if grids differ, for shards if parameters are sharded") {
  const auto mean_of = [](const WhyAnswer& answer, traces::Idle idle) {
    return traces::mean(answer.idle)[static_cast<std::size_t>(idle)];
  };
  const Scenario apart = test::scenario_at("scenarios/rehearse_8.json");
  CHECK(mean_of(answered(apart, *apart.layout), traces::Idle::bridge) > Seconds{});
  const Scenario shared = test::scenario_at("scenarios/tiny_colocated.json");
  Layout layout = *shared.layout;
  CHECK(mean_of(answered(shared, layout), traces::Idle::shards) == Seconds{});
  for (ModuleLayout& grid : layout.modules)
    if (grid.dp() > 1) grid.shard = Shard::optimizer;
  REQUIRE_FALSE(check_layout(shared, layout));
  CHECK(mean_of(answered(shared, layout), traces::Idle::shards) > Seconds{});
}

TEST_CASE("suggested changes are neighbors that fit, with the predicted gain") {
  const Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  const WhyAnswer answer = answered(scenario, *scenario.layout);
  REQUIRE_FALSE(answer.worth_trying.empty());
  CHECK(answer.worth_trying.size() <= WhyOptions{}.most);
  const std::vector<Layout> near = neighbours(scenario, *scenario.layout);
  double before = 1;
  for (const WorthTrying& change : answer.worth_trying) {
    CHECK(std::find(near.begin(), near.end(), change.layout) != near.end());
    CHECK(change.words == changes(scenario.model, *scenario.layout, change.layout));
    CHECK_FALSE(change.words.empty());
    CHECK(change.step == predicted(scenario, change.layout, Predictor::estimate));
    CHECK(change.gain == doctest::Approx(1 - change.step / answer.estimate));
    CHECK(change.certainty > 0.5);
    CHECK(change.gain * change.certainty <= before);
    before = change.gain * change.certainty;
  }
  const WorthTrying& first = answer.worth_trying.front();
  CHECK(predicted(scenario, first.layout, Predictor::simulate) < answer.now.figures.step);
  const nlohmann::json json = to_json(answer, scenario.model);
  CHECK(json["worth_trying"][0]["changes"][0] == first.words[0]);
  CHECK(json["worth_trying"][0]["gain"] == first.gain);
  const nlohmann::json& spent = json["critical_rank_seconds"];
  double idle = 0;
  for (const auto& [what, time] : spent["idle_for"].items()) idle += time.get<double>();
  CHECK(idle == doctest::Approx(spent["idle"].get<double>()));
}

TEST_CASE("chunked GEMMs are suggested if tensor-parallel reductions are exposed") {
  const auto words = [](const std::string& grid) {
    const Scenario scenario = read_scenario(
        R"({"polyphony": 1, "training": {"precision": "bf16"},
            "model": {"language": {"layers": 4, "hidden": 2048, "heads": 16, "ffn": 5632, "vocab": 32000}},
            "cluster": {"node": {"device": "A100-80", "ranks": 4, "link": "10GB/s"}},
            "data": {"source": "synthetic", "text": {"tokens": 2048}, "global_batch": 8},
            "layout": {"placement": "homogeneous", "all": {)" +
            grid + "}}}",
        "sums that show", test::file_text);
    std::vector<std::string> found;
    for (const WorthTrying& change :
         answered(scenario, *scenario.layout, {.most = 100}).worth_trying)
      found.insert(found.end(), change.words.begin(), change.words.end());
    return found;
  };
  const auto has = [](const std::vector<std::string>& all, const std::string& word) {
    return std::find(all.begin(), all.end(), word) != all.end();
  };
  CHECK(has(words(R"("tp": 4)"), "TP chunks 1 -> 2"));
  CHECK(has(words(R"("tp": 4, "tp_pieces": 2)"), "TP chunks 2 -> 4"));
  for (const std::string& word : words(R"("tp": 1)"))
    CHECK(word.find("pieces") == std::string::npos);
}

TEST_CASE("nothing is suggested for a layout that no neighbor beats") {
  const Scenario scenario = test::scenario_at("scenarios/tiny_uneven.json");
  Layout layout = *scenario.layout;
  WhyAnswer answer = answered(scenario, layout, {.predictor = Predictor::estimate});
  REQUIRE_FALSE(answer.worth_trying.empty());
  for (int step = 0; step < 40 && !answer.worth_trying.empty(); ++step) {
    layout = answer.worth_trying.front().layout;
    answer = answered(scenario, layout, {.predictor = Predictor::estimate});
  }
  REQUIRE(answer.worth_trying.empty());
  CHECK(answer.looked_at > 0);
  for (const Layout& next : neighbours(scenario, layout))
    CHECK(predicted(scenario, next, Predictor::estimate) >= (1 - 1e-3) * answer.estimate);
}

TEST_CASE("changes that do not fit are not suggested") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  const WhyAnswer free = answered(scenario, *scenario.layout, {.most = 100});
  // Memory for this layout, but not for schedules that save more activations.
  scenario.cluster.device.memory = free.now.figures.peak_memory + Bytes(1 << 20);
  const WhyAnswer tight = answered(scenario, *scenario.layout, {.most = 100});
  CHECK(tight.fitting < free.fitting);
  for (const WorthTrying& change : tight.worth_trying)
    CHECK(change.peak_memory <= scenario.cluster.device.memory);
  // Too little memory for this layout, but enough for microbatches half as large.
  scenario.cluster.device.memory = free.now.figures.peak_memory - Bytes(1 << 20);
  const WhyAnswer out = answered(scenario, *scenario.layout, {.most = 100});
  CHECK_FALSE(out.now.out_of_memory.empty());
  REQUIRE_FALSE(out.worth_trying.empty());
  for (const WorthTrying& change : out.worth_trying)
    CHECK(change.peak_memory <= scenario.cluster.device.memory);
}

TEST_CASE("changes are described in words") {
  const Scenario scenario = test::scenario_at("scenarios/tiny_uneven.json");
  const Layout& from = *scenario.layout;
  CHECK(changes(scenario.model, from, from).empty());
  Layout to = from;
  ModuleLayout& language = to.modules[language_module(scenario.model).value];
  REQUIRE(language.blocks == std::vector<int>{3, 1});
  language.blocks = {2, 2};
  language.recompute = Recompute::full;
  to.microbatches = 2;
  to.schedule = ScheduleKind::gpipe;
  CHECK(changes(scenario.model, from, to) ==
        std::vector<std::string>{"language recompute none -> full",
                                 "language a block from stage 0 to stage 1",
                                 "schedule 1f1b -> gpipe", "microbatches 4 -> 2"});
}

}  // namespace polyphony::tests
