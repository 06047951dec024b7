#include "shared/scenario_io/phases.h"

#include <doctest/doctest.h>

#include <map>

#include "shared/checkpoint/carried_weights.h"
#include "shared/kernels/lora.h"
#include "tests/shared/support/scenario_files.h"

using namespace polyphony;

namespace {

// scenarios/tiny.json with phases.
std::string phased(const std::string& phases) {
  return R"({"polyphony": 1, "extends": "scenarios/tiny.json", "phases": )" + phases + "}";
}
std::vector<TrainingPhase> phases_read(const std::string& text,
                                       const std::vector<std::string>& overrides = {},
                                       const LoadText& load = test::file_text) {
  std::vector<Override> parsed;
  for (const std::string& override : overrides) parsed.push_back(parse_override(override));
  return read_phases(text, "s.json", load, parsed);
}
std::string refused(const std::string& text, const std::vector<std::string>& overrides = {},
                    const LoadText& load = test::file_text) {
  try {
    phases_read(text, overrides, load);
  } catch (const InputError& error) {
    return error.command_line();
  }
  return "";
}
bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const char* const kTwo = R"([
  {"name": "align", "change": {"model": {"language": {"train": "frozen"}}, "training": {"steps": 7}}},
  {"name": "tune", "change": {"model": {"language": {"train": "lora", "lora_rank": 4}},
                              "data": {"global_batch": 16}, "layout": {"all": {"pp": 1, "tp": 2}}}}])";

}  // namespace

TEST_CASE("a phase is the scenario with its change") {
  const std::vector<TrainingPhase> phases = phases_read(phased(kTwo));
  REQUIRE(phases.size() == 2);
  const Scenario tiny = test::scenario_at("scenarios/tiny.json");
  const Scenario &align = phases[0].scenario, &tune = phases[1].scenario;
  CHECK(phases[0].name == "align");
  CHECK(align.model.modules.back().trainable == Trainable::frozen);
  CHECK(align.training.steps == 7);
  CHECK(align.data == tiny.data);
  CHECK(align.layout == tiny.layout);
  CHECK(phases[1].name == "tune");
  CHECK(tune.model.modules.back().trainable == Trainable::lora);
  CHECK(tune.training == tiny.training);
  CHECK(tune.data.global_batch == 16);
  CHECK(tune.layout->modules.back().tp == 2);
  CHECK(tune.layout->modules.back().pp == 1);
}

TEST_CASE("a phase without a change is the scenario itself, null removes a key") {
  const std::vector<TrainingPhase> phases = phases_read(phased(
      R"([{"name": "a"}, {"name": "b", "change": {"layout": null, "search": {"schedule": "1f1b"}}}])"));
  const Scenario tiny = test::scenario_at("scenarios/tiny.json");
  CHECK(phases[0].scenario.model == tiny.model);
  CHECK(phases[0].scenario.layout == tiny.layout);
  CHECK_FALSE(phases[1].scenario.layout.has_value());
  CHECK(phases[1].scenario.search->schedule == std::vector{ScheduleKind::one_f_one_b});
}

TEST_CASE("one phase is read by its name") {
  const std::string text = phased(kTwo);
  CHECK(read_scenario(text, "s.json", test::file_text, {}, "tune").data.global_batch == 16);
  CHECK(phase_names(text, "s.json", test::file_text) == std::vector<std::string>{"align", "tune"});
  CHECK(phase_names(test::file_text("scenarios/tiny.json"), "t.json", test::file_text).empty());
  CHECK(phases_read(test::file_text("scenarios/tiny.json")).empty());
  const auto refusal = [](const std::string& of, const std::string& phase) {
    try {
      read_scenario(of, "s.json", test::file_text, {}, phase);
    } catch (const InputError& error) {
      return error.command_line();
    }
    return std::string();
  };
  CHECK(refusal(text, "") ==
        "s.json: /phases: the scenario has the phases align, tune, of which one is required "
        "(choose one: --phase align)");
  CHECK(refusal(text, "tun") ==
        "--phase: \"tun\" is not a phase of s.json (did you mean \"tune\"?)");
  CHECK(refusal(test::file_text("scenarios/tiny.json"), "tune") ==
        "--phase: s.json has no phases (omit the option)");
}

TEST_CASE("an override replaces the value of every phase") {
  for (const TrainingPhase& phase :
       phases_read(phased(kTwo), {"training.steps=2", "data.seed=9"})) {
    CHECK(phase.scenario.training.steps == 2);
    CHECK(phase.scenario.data.seed == 9);
  }
  CHECK(read_scenario(phased(kTwo), "s.json", test::file_text,
                      {parse_override("layout.microbatches=2")}, "tune")
            .layout->microbatches == 2);
  CHECK(contains(refused(phased(kTwo), {"phases=[]"}), "--set phases=[]: /phases: "));
  CHECK(contains(refused(phased(kTwo), {"data.global_bacth=2"}),
                 "--set data.global_bacth=2: /data/global_bacth: unknown key"));
}

TEST_CASE(
    "phases of an extended file are replaced as a whole, and their paths are relative to it") {
  const std::string profile = test::file_text("scenarios/tiny.json");
  std::map<std::string, std::string> files{
      {"base/s.json",
       R"({"polyphony": 1, "extends": "tiny.json", "phases": [{"name": "x", "change": {"cluster": {"profile": "p.json"}}}]})"},
      {"base/tiny.json", profile}};
  const LoadText load = [&](const std::string& path) {
    const auto found = files.find(path);
    if (found == files.end()) throw InputError(path, "", "no such file", "check the path");
    return found->second;
  };
  const std::string top = R"({"polyphony": 1, "extends": "base/s.json"})";
  CHECK(phases_read(top, {}, load).front().scenario.cluster.profile == "base/p.json");
  const std::string other =
      R"({"polyphony": 1, "extends": "base/s.json", "phases": [{"name": "y"}, {"name": "z"}]})";
  CHECK(phase_names(other, "s.json", load) == std::vector<std::string>{"y", "z"});
  const std::string none = R"({"polyphony": 1, "extends": "base/s.json", "phases": null})";
  CHECK(phase_names(none, "s.json", load).empty());
  CHECK(read_scenario(none, "s.json", load).cluster.profile ==
        test::scenario_at("scenarios/tiny.json").cluster.profile);
  // The file that holds the phases is named.
  files["base/s.json"] =
      R"({"polyphony": 1, "extends": "tiny.json", "phases": [{"name": "x", "change": {"data": {"sed": 1}}}]})";
  CHECK(contains(refused(top, {}, load), "base/s.json: /phases/0/change/data/sed: unknown key"));
}

TEST_CASE("wrong phases are refused with the place in the file") {
  const auto of = [](const std::string& phases) { return refused(phased(phases)); };
  CHECK(contains(of("[]"), "s.json: /phases: list has 0 values"));
  CHECK(contains(of(R"([{"change": {}}])"), "s.json: /phases/0: key \"name\" is missing"));
  CHECK(contains(of(R"([{"nam": "a"}])"), "s.json: /phases/0/nam: unknown key"));
  CHECK(contains(of(R"([{"name": "a"}, {"name": "a"}])"),
                 "s.json: /phases/1/name: \"a\" is the name of an earlier phase"));
  for (const std::string name : {"", "a/b", ".a", "..", "a b", "-a"})
    CHECK(contains(of(R"([{"name": ")" + name + "\"}]"), "is no plain file name"));
  CHECK(contains(of(R"([{"name": "a", "change": []}])"), "s.json: /phases/0/change: a list"));
  CHECK(contains(of(R"([{"name": "a"}, {"name": "b", "change": {"data": {"global_bacth": 1}}}])"),
                 "s.json: /phases/1/change/data/global_bacth: unknown key"));
  CHECK(contains(of(R"([{"name": "a", "change": {"training": {"steps": "many"}}}])"),
                 "s.json: /phases/0/change/training/steps: "));
  CHECK(contains(of(R"([{"name": "a", "change": {"phases": []}}])"),
                 "s.json: /phases/0/change/phases: a phase changes values"));
  CHECK(contains(of(R"([{"name": "a", "change": {"extends": "b.json"}}])"),
                 "s.json: /phases/0/change/extends: a phase changes values"));
  CHECK(contains(of(R"([{"name": "a", "change": {"data": null}}])"),
                 "s.json: /phases/0/change: key \"data\" is missing"));
  // A value of the base that a change makes wrong: in the file of the value, with the phase's name.
  CHECK(contains(
      of(R"([{"name": "a", "change": {"model": {"vision": {"patch": 5}}}}])"),
      "scenarios/tiny.json: /model/vision/image_size: in phase \"a\": image_size must be "));
}

TEST_CASE("a phase that cannot begin with the parameters of the one before is refused") {
  const auto of = [](const std::string& first, const std::string& second) {
    return refused(phased(R"([{"name": "a", "change": {"model": )" + first +
                          R"(}}, {"name": "b", "change": {"model": )" + second + "}}]"));
  };
  const std::string lora4 = R"({"language": {"train": "lora", "lora_rank": 4}})",
                    lora8 = R"({"language": {"train": "lora", "lora_rank": 8}})";
  CHECK(of("{}", lora4).empty());
  CHECK(of(lora4, lora4).empty());
  CHECK(of(R"({"language": {"rope_theta": 10000}})", R"({"language": {"rope_theta": 500000}})")
            .empty());  // long context
  CHECK(of(lora4, "{}") ==
        "s.json: /phases/1: phase \"b\" cannot begin with the parameters of phase \"a\": the "
        "low-rank pairs of language have no place in it (keep \"train\": \"lora\" for language, or "
        "write merged weights with `polyphony export RUN --hf FOLDER --merge` and begin another "
        "scenario with them)");
  CHECK(contains(of(lora4, lora8),
                 "s.json: /phases/1/change/model/language: phase \"b\" cannot begin with the "
                 "parameters of phase \"a\": language.block0.qkv.lora_a is 4 × 32 before, 8 × 32 "
                 "after (give both the same \"lora_rank\")"));
  CHECK(contains(of("{}", R"({"language": {"ffn": 128}})"),
                 "is 128 × 32 before, 256 × 32 after (give both the same modules"));
  CHECK(contains(of("{}", R"({"language": {"layers": 5}})"), "there is no language.block4."));
  CHECK(contains(of("{}", R"({"language": {"layers": 3}})"), " after"));
}

TEST_CASE("which parameters a model can begin with") {
  Scenario scenario = test::scenario_at("scenarios/tiny.json");
  const std::vector<ModelParameter> saved = model_parameters(scenario.model);
  CHECK_FALSE(carry_fault(saved, scenario.model).has_value());
  scenario.model.modules.back().trainable = Trainable::frozen;
  CHECK_FALSE(carry_fault(saved, scenario.model).has_value());
  CHECK(is_low_rank("language.block0.qkv.lora_a"));
  CHECK_FALSE(is_low_rank("language.block0.qkv.weight"));
  std::vector<ModelParameter> fewer(saved.begin(), saved.end() - 1);
  const auto fault = carry_fault(fewer, scenario.model);
  REQUIRE(fault.has_value());
  CHECK(fault->module == "language");
  CHECK(fault->what == "there is no " + saved.back().name + " before");
}
