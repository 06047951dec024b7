// Measured layer times and abstract modules: reading, errors, resolved form.
#include <doctest/doctest.h>

#include "shared/check/check.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/text/quantity_text.h"
#include "tests/shared/support/scenario_files.h"

using namespace polyphony;

namespace {

// An abstract vision module of 4 layers in front of an abstract language module of 3.
std::string text_with(const std::string& vision, const std::string& language) {
  return R"({"polyphony": 1, "model": {"vision": {)" + vision +
         R"(}, "language": {"from": "vision", )" + language +
         R"(}}, "cluster": {"node": {"device": "H100", "ranks": 8}}, "data": {"global_batch": 12},
             "training": {"precision": "fp32"}})";
}
const std::string kVision = R"("layers": 4, "train": "frozen", "layer_times": {"forward": "2ms"})";
const std::string kLanguage =
    R"("layers": 3, "layer_times": {"forward": "1ms", "backward_input": "1ms", "backward_weight": "1ms"})";

Scenario read(const std::string& vision, const std::string& language = kLanguage) {
  return read_scenario(text_with(vision, language), "s.json", test::file_text);
}
std::string refused(const std::string& vision, const std::string& language = kLanguage) {
  return test::refusal(text_with(vision, language));
}
void check_says(const std::string& text, const std::string& pointer, const std::string& words) {
  CAPTURE(text);
  CHECK(text.find("s.json: " + pointer + ":") == 0);
  CHECK(text.find(words) != std::string::npos);
}

}  // namespace

TEST_SUITE("layer times in scenarios") {
  TEST_CASE("an abstract module: sizes, one token by default, resolved and read again") {
    const Scenario scenario = read(
        R"("layers": 4, "train": "frozen", "tokens": 16, "output": "5B", "kept": "34B",
           "parameters": "1MB", "layer_times": [
             {"layers": [0, 1], "forward": {"constant": "1ms", "per_token": "2us", "per_token_squared": "3ns"}},
             {"stage": [1, 4], "tp": 2, "cp": 1, "forward": "6ms"},
             {"layers": "input", "forward": "1us"}, {"forward": "1s"}])");
    const Module &vision = scenario.model.modules[0], &language = scenario.model.modules[1];
    CHECK((vision.abstract.is && language.abstract.is));
    // fp32: 4 bytes a number; 5 bytes are two of them.
    CHECK((vision.hidden == 2 && vision.abstract.parameters == 250'000));
    CHECK((vision.abstract.kept == 34 && vision.abstract.tokens == 16));
    CHECK(language.hidden == 1);
    CHECK(layers(vision).size() == 6);
    CHECK(vision.abstract.grids.empty());  // the last entry holds for any
    const auto& data = std::get<SyntheticData>(scenario.data.source);
    CHECK((data.images.a == 1 && data.text_tokens.a == 1));
    const std::vector<MeasuredLayers>& times = scenario.layer_times.at("vision");
    REQUIRE(times.size() == 4);
    CHECK(times[0].forward ==
          MeasuredTime{parse_seconds("1ms"), parse_seconds("2us"), parse_seconds("3ns")});
    CHECK((times[1].stage && times[1].first == 1 && times[1].last == 4 && times[1].tp == 2));
    CHECK(times[2].part == MeasuredPart::input);
    const Scenario again = read_scenario(resolved_text(scenario), "again.json", test::file_text);
    CHECK(again.model == scenario.model);
    CHECK(again.layer_times == scenario.layer_times);
  }

  TEST_CASE("times for some grids only: other grids are rejected by name") {
    const Scenario scenario = read(
        R"("layers": 4, "train": "frozen", "layer_times": [{"tp": 2, "forward": "1ms"}, {"tp": 4, "cp": 2, "forward": "1ms"}])");
    Layout layout;
    layout.modules.resize(2);
    for (ModuleLayout& grid : layout.modules) {
      grid.ranks = 8;
      grid.tp = 4;
    }
    const auto no = check_layout(scenario, layout);
    REQUIRE(no);
    CHECK(no->reason ==
          "vision has no layer_times for tp 4, cp 1; it has them for tp 2, cp any; tp 4, cp 2");
    layout.modules[0].tp = layout.modules[1].tp = 2;
    CHECK_FALSE(check_layout(scenario, layout));
    layout.modules[1].recompute = Recompute::selective;
    CHECK(check_layout(scenario, layout)
              ->reason.find("selective recomputation needs the module's dimensions") !=
          std::string::npos);
    CHECK(check_runnable(scenario, layout)
              ->reason.find(
                  "vision is defined by its layer_times alone, which is simulation only") == 0);
  }

  TEST_CASE("errors in measured layer times, with file, pointer and hint") {
    check_says(refused(R"("train": "frozen", "layer_times": {"forward": "2ms"})"), "/model/vision",
               "key \"layers\" is missing");
    check_says(refused(kVision + R"(, "heads": 8)"), "/model/vision/heads",
               "heads must not be given in an abstract module");
    check_says(
        refused(
            R"("layers": 4, "train": "frozen", "layer_times": {"layers": [0, 3], "forward": "2ms"})"),
        "/model/vision/layer_times", "none is given for block 3");
    check_says(
        refused(
            R"("layers": 4, "train": "frozen", "layer_times": [{"layers": [2, 5], "forward": "2ms"}, {"forward": "1ms"}])"),
        "/model/vision/layer_times/0/layers", "the blocks of vision, got an end of 5");
    check_says(
        refused(
            R"("layers": 4, "train": "frozen", "layer_times": {"layers": [2, 2], "forward": "2ms"})"),
        "/model/vision/layer_times/layers", "the range is empty");
    check_says(refused(R"("layers": 4, "layer_times": {"forward": "2ms"})"),
               "/model/vision/layer_times", "\"backward_weight\" is missing: vision is trained");
    check_says(
        refused(R"("layers": 4, "layer_times": {"forward": "2ms", "backward_weight": "1ms"})"),
        "/model/vision/layer_times", "\"backward_input\" is missing");
    check_says(
        refused(
            kVision,
            R"("layers": 1, "layer_times": {"forward": "1ms", "backward_weight": "1ms", "stage": [0, 1], "layers": "each"})"),
        "/model/language/layer_times/stage", "\"stage\" and \"layers\" are both given");
    check_says(
        refused(
            R"("layers": 4, "train": "lora", "layer_times": {"forward": "2ms", "backward_input": "1ms", "backward_weight": "1ms"})"),
        "/model/vision/train", "lora needs the module's dimensions");
    check_says(refused(R"("layers": 4, "train": "frozen", "layer_times": {"forward": 2})"),
               "/model/vision/layer_times/forward", "");
    check_says(refused(R"("preset": "clip-vit-l-14-336", "train": "frozen", "kept": "1MB")"),
               "/model/vision/kept", "kept must not be given: it is for abstract modules");
  }

  TEST_CASE("a profile file has layer times by module") {
    HardwareProfile profile = *find_profile("h100-roofline");
    MeasuredLayers stage;
    stage.last = 4;
    stage.stage = true;
    stage.tp = 2;
    stage.forward.constant = Seconds(0.25);
    stage.backward_weight.per_token = Seconds(1e-6);
    profile.layer_times["vision"] = {stage};
    CHECK(parse_profile(to_json(profile), "p.json") == profile);
  }
}
