// Sweeps: the work for candidates, brute force on small spaces, early stops, and intervals.
#include "sim/sweep/sweep.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "shared/hardware/devices.h"
#include "shared/scenario/typical_batch.h"
#include "shared/search/space.h"
#include "sim/answer_json/answers_json.h"
#include "sim/prediction/effects.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {
namespace {

using namespace sim;

// Questions of 4 to 9 words about an image, as in the data set.
Scenario with_questions(const std::string& path) {
  Scenario scenario = test::scenario_at(path);
  const Module& vision = scenario.model.modules.front();
  const int side = vision.image_size / vision.patch;
  for (std::uint32_t id = 0; id < 64; ++id)
    scenario.data.samples.push_back({id,
                                     {{Modality::image, side * side, 0},
                                      {Modality::text, 4 + static_cast<std::int32_t>(id % 6), 1}}});
  return scenario;
}

// A search space small enough to try all layouts.
Search few(const Scenario& scenario) {
  Search search = examples::few_choices(scenario.model.modules.size());
  search.microbatch = {1, 2};
  search.encoder_microbatches = {1};
  return search;
}

Sweep small_sweep(const Scenario& scenario, const HardwareProfile& profile) {
  SweepOptions options;
  options.jobs = 2;
  options.predictor = Predictor::estimate;
  return sweep(scenario, profile, options);
}

}  // namespace

// Samples differ, so no layout folds.
TEST_CASE("every candidate is lowered once, in workers only") {
  const Scenario scenario = with_questions("scenarios/easy_vqa_4_ranks.json");
  const std::uint64_t before = programs_lowered();
  const Sweep result = small_sweep(scenario, *shipped_profile(scenario.cluster));
  CHECK(programs_lowered() == before);  // only workers lower Programs
  REQUIRE(result.ranked.size() > 3);
  for (const Candidate& c : result.ranked) CHECK(c.lowerings == 1);
}

// Llama 8B, sequences of 131,072 tokens over 8 context-parallel ranks of a node.
TEST_CASE("the kind of context-parallel attention is searched by default") {
  const auto best = [](const std::string& link, const std::string& more) {
    const Scenario scenario = read_scenario(
        R"({"polyphony": 1, "training": {"precision": "bf16"}, "model": {"language": {"preset": "llama-3.1-8b"}},
            "cluster": {"node": {"device": "H100", "ranks": 8, "link": ")" +
            link + R"("}, "nodes": 8, "nic": "400Gbps"},
            "data": {"source": "synthetic", "text": {"tokens": 131072}, "global_batch": 32},
            "search": {"language": {"tp": 1, "cp": 8)" +
            more + "}}}",
        "long texts", test::file_text);
    const Sweep found = small_sweep(scenario, *shipped_profile(scenario.cluster));
    REQUIRE_FALSE(found.ranked.empty());
    return found.ranked.front();
  };
  for (const char* link : {"450GBps", "25GBps"}) {
    CAPTURE(link);
    const Candidate chosen = best(link, "");
    Seconds least(1e300);
    for (const char* way : {"all-gather", "ulysses", "ring"})
      least = std::min(
          least, best(link, R"(, "cp_attention": ")" + std::string(way) + R"(")").figures.step);
    CHECK(chosen.figures.step <= least * (1 + 1e-9));
    CHECK((chosen.layout.modules[0].cp_attention == ContextAttention::ring) ==
          (std::string(link) == "25GBps"));
  }
}

// All samples of rehearse_8.json are equal, so that some ranks can represent all.
TEST_CASE("layouts that fold are estimated folded and simulated whole") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  scenario.layout.reset();
  scenario.search = few(scenario);
  SweepOptions options;
  options.at_least = 2;
  const Sweep result = sweep(scenario, *shipped_profile(scenario.cluster), options);
  REQUIRE(result.ranked.size() > 3);
  int simulated = 0, folded = 0;
  for (const Candidate& c : result.ranked) {
    simulated += c.simulated ? 1 : 0;
    folded += c.folded ? 1 : 0;
    CHECK_FALSE((c.simulated && c.folded));
    constexpr double kRounding = 1 + 1e-6;  // SimGrid sums in another order
    CHECK(c.bound.step <= c.estimate * kRounding);
    CHECK(c.estimate <= c.figures.step * kRounding);
  }
  CHECK(result.ranked.front().simulated);
  CHECK(simulated >= 2);
  CHECK(folded > 0);
  for (const auto& [placement, gap] : result.gaps) CHECK(gap == 0);
}

// Work is counted in ops and candidates, never in seconds or workers.
TEST_CASE("the answer and the work for it do not depend on the number of workers") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  scenario.layout.reset();
  SweepOptions options;
  options.effort = 0.05;
  std::vector<Sweep> answers;
  for (const int jobs : {1, 2, 5}) {
    options.jobs = jobs;
    answers.push_back(sweep(scenario, *shipped_profile(scenario.cluster), options));
  }
  for (const Sweep& other : {answers[1], answers[2]}) {
    CHECK(other.estimated == answers[0].estimated);
    CHECK(other.simulated == answers[0].simulated);
    REQUIRE(other.ranked.size() == answers[0].ranked.size());
    for (std::size_t i = 0; i < other.ranked.size(); ++i) {
      CHECK(other.ranked[i].layout == answers[0].ranked[i].layout);
      CHECK(other.ranked[i].figures.step == answers[0].ranked[i].figures.step);
    }
  }
}

// Compared with brute force: every legal layout of the space, unfolded.
TEST_CASE("the best is at least as good as brute force over the space") {
  for (const char* path : {"scenarios/rehearse_8.json", "scenarios/rehearse_4.json"}) {
    Scenario scenario = test::scenario_at(path);
    scenario.layout.reset();
    scenario.search = few(scenario);
    const HardwareProfile profile = *shipped_profile(scenario.cluster);
    const Batch batch = typical_batch(scenario);
    Seconds best(1e300);
    std::size_t fitting = 0;
    for (const Layout& layout : candidates(scenario)) {
      const auto outcome = predict(scenario, layout, batch, profile, Predictor::simulate);
      const auto& prediction = std::get<Prediction>(outcome);
      if (!figures(scenario, prediction).fits()) continue;
      ++fitting;
      best = std::min(best, prediction.step());
    }
    REQUIRE(fitting > 50);
    SweepOptions options;
    const Sweep result = sweep(scenario, profile, options);
    CAPTURE(path);
    REQUIRE_FALSE(result.ranked.empty());
    CHECK(result.ranked.front().simulated);
    CHECK(result.ranked.front().figures.step <= best * (1 + 1e-9));
  }
}

// On this device the layout that is best with plenty of memory would fill the memory.
TEST_CASE("the best leaves the memory margin free, and only where nothing does, rows take more") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  scenario.layout.reset();
  scenario.search = few(scenario);
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const Sweep free = small_sweep(scenario, profile);
  REQUIRE_FALSE(free.ranked.empty());
  CHECK_FALSE(free.over_margin);
  Bytes least = free.ranked.front().figures.peak_memory;
  for (const Candidate& c : free.ranked) least = std::min(least, c.figures.peak_memory);
  scenario.cluster.device.memory = free.ranked.front().figures.peak_memory + Bytes(1024);
  REQUIRE(least < scenario.memory_limit());
  const Sweep kept = small_sweep(scenario, profile);
  REQUIRE_FALSE(kept.ranked.empty());
  CHECK_FALSE(kept.over_margin);
  for (const Candidate& c : kept.ranked) CHECK(c.figures.peak_memory <= scenario.memory_limit());
  scenario.search->memory_margin = 0;
  CHECK(small_sweep(scenario, profile).ranked.front().figures.step ==
        free.ranked.front().figures.step);
  scenario.search->memory_margin = 0.9;  // nothing leaves so much
  const Sweep full = small_sweep(scenario, profile);
  REQUIRE_FALSE(full.ranked.empty());
  CHECK(full.over_margin);
  CHECK(full.ranked.front().figures.step == free.ranked.front().figures.step);
}

TEST_CASE("the simplest row is within 2 % of the best") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  scenario.layout.reset();
  scenario.search = few(scenario);
  const Sweep result = small_sweep(scenario, *find_profile(default_profile("H100")));
  REQUIRE(result.tied > 1);
  const Candidate& simplest = result.ranked[result.simplest];
  CHECK(simplest.tied);
  CHECK(simplest.figures.step <= 1.02 * result.ranked.front().figures.step);
}

TEST_CASE("the order of lists does not matter, and known answers are reused") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  scenario.layout.reset();
  scenario.search = few(scenario);
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  KnownAnswers known;
  std::map<std::string, std::string> journal;
  known.learned = [&](const std::string& key, const std::string& answer) { journal[key] = answer; };
  SweepOptions options;
  options.known = &known;
  const auto text = [&](const Sweep& result) {
    nlohmann::json json = to_json(result, scenario.model);
    json.erase("rejected");  // in order of first appearance
    return json.dump();
  };
  const std::string first = text(sweep(scenario, profile, options));
  REQUIRE(journal.size() > 20);
  KnownAnswers again;
  for (const auto& [key, answer] : journal) again.add(key, answer);
  bool worked = false;
  again.learned = [&](const std::string&, const std::string&) { worked = true; };
  options.known = &again;
  CHECK(text(sweep(scenario, profile, options)) == first);
  CHECK_FALSE(worked);
  Scenario turned = scenario;
  for (ModuleSearch& module : turned.search->modules) {
    std::reverse(module.shard.begin(), module.shard.end());
    std::reverse(module.recompute.begin(), module.recompute.end());
  }
  options.known = nullptr;
  CHECK(text(sweep(turned, profile, options)) == first);
}

TEST_CASE("a shortened answer still contains the best of each placement, compared") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  scenario.layout.reset();
  scenario.search = few(scenario);
  const HardwareProfile profile = *find_profile(default_profile("H100"));
  SweepOptions options;
  options.predictor = Predictor::estimate;
  const Sweep whole = sweep(scenario, profile, options);
  options.ranked = options.compared = 2;
  const Sweep cut = sweep(scenario, profile, options);
  std::map<Placement, Seconds> best, kept;
  for (const Candidate& c : whole.ranked) best.try_emplace(c.layout.placement, c.figures.step);
  for (const Candidate& c : cut.ranked) {
    kept.try_emplace(c.layout.placement, c.figures.step);
    CHECK(c.belief.has_value());
  }
  REQUIRE(best.size() == 3);
  CHECK(kept == best);
  CHECK(cut.ranked.size() < 6);
}

TEST_CASE("a sweep stopped after one simulation ranks and compares its results so far") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  scenario.layout.reset();
  scenario.search = few(scenario);
  KnownAnswers known;
  bool simulated = false;
  known.learned = [&](const std::string& key, const std::string&) {
    simulated = simulated || key.rfind("simulate", 0) == 0;
  };
  SweepOptions options;
  options.known = &known;
  options.stopped = [&] { return simulated; };
  const HardwareProfile profile = *find_profile(default_profile("H100"));  // states its errors
  REQUIRE_FALSE(profile.certainty.errors.empty());
  const Sweep result = sweep(scenario, profile, options);
  CHECK(result.stopped);
  REQUIRE(result.ranked.size() > 3);
  CHECK(result.gaps.empty());
  int believed = 0;
  for (const Candidate& c : result.ranked) believed += c.belief.has_value() ? 1 : 0;
  CHECK(believed < static_cast<int>(result.ranked.size()));
}

TEST_CASE("intervals equal those of the candidate's own prediction") {
  const Scenario scenario = with_questions("scenarios/easy_vqa.json");
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const Sweep result = small_sweep(scenario, profile);
  REQUIRE(result.ranked.size() > 5);
  const Candidate& last = result.ranked[5];  // of those that are compared
  const auto outcome =
      predict(scenario, last.layout, typical_batch(scenario), profile, Predictor::estimate);
  const auto& prediction = std::get<Prediction>(outcome);
  const std::vector<double> effects = step_effects(scenario, last.layout, prediction, profile);
  REQUIRE(effects.size() == last.effects.size());
  for (std::size_t k = 0; k < effects.size(); ++k)
    CHECK(last.effects[k] == doctest::Approx(effects[k]));
  REQUIRE(last.belief.has_value());
  CHECK(last.belief->step == prediction.step());
  CHECK(last.difference.has_value());
  CHECK_FALSE(result.ranked.front().difference.has_value());
  // The value contains everything that its JSON contains.
  const nlohmann::json json = to_json(result, scenario.model);
  CHECK(json["ranked"].size() == result.ranked.size());
  CHECK(json["ranked"][5]["layout"] == describe(scenario.model, last.layout));
  CHECK(json["profile"] == profile.name);
}

}  // namespace polyphony::tests
