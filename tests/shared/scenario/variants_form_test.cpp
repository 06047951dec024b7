// Keys of variants of dense models: reading, errors, resolved form.
#include <doctest/doctest.h>

#include "shared/plan/plan.h"
#include "shared/scenario_io/scenario_json.h"
#include "tests/shared/support/scenario_files.h"

using namespace polyphony;

namespace {

// tiny.json with another model.
std::string with_model(const std::string& model) {
  return R"({"polyphony": 1, "extends": "scenarios/tiny.json",
             "about": "A variant of tiny.json; its arithmetic and its source are found there.",
             "model": )" +
         model + "}";
}
Scenario read_variants(const std::string& model) {
  return read_scenario(with_model(model), "variant.json", test::file_text);
}

void check_round_trip(const Scenario& scenario) {
  const Scenario again = read_scenario(resolved_text(scenario), "variant.json", test::file_text);
  CHECK(again.model == scenario.model);
  CHECK(resolved_text(again) == resolved_text(scenario));
}

}  // namespace

TEST_CASE("variants of vision and language modules are read and printed") {
  const Scenario scenario = read_variants(R"({
      "vision": {"gated": true, "attention_bias": false, "qkv_bias": true, "mlp_bias": false,
                 "qk_norm": true, "norm": "rms", "rotary": true, "rope_theta": 100, "window": 2,
                 "full_attention_blocks": [1]},
      "projector": {"hidden": 0},
      "language": {"gated": false, "mlp_bias": true, "norm": "layer", "qkv_bias": true,
                   "tied": true, "rope_sections": [1, 1, 2]}})");
  const Module &vision = scenario.model.modules[0], &language = scenario.model.modules[2];
  CHECK((vision.gated && vision.qkv_bias && vision.qk_norm && vision.rotary));
  CHECK((!vision.attention_bias && !vision.mlp_bias && vision.norm == Norm::rms));
  CHECK((vision.window == 2 && vision.rope_theta == 100));
  CHECK(vision.full_attention_blocks == std::vector<int>{1});
  CHECK(layers(scenario.model.modules[1]) == std::vector<LayerKind>{LayerKind::projector_linear});
  CHECK((!language.gated && language.mlp_bias && language.norm == Norm::layer && language.tied));
  CHECK(language.rope_sections == std::vector<int>{1, 1, 2});
  check_round_trip(scenario);
  CHECK(read_variants(R"({"vision": {"class_token": true}})").model.modules[0].class_token);
}

TEST_CASE("an audio module feeds a language module through merged frames") {
  const std::string audio = R"({"vision": null,
      "audio": {"layers": 2, "hidden": 32, "heads": 4, "ffn": 64, "mel_bins": 8, "audio_tokens": 12},
      "projector": {"from": "audio", "merge": 3, "hidden": 16}})";
  const auto text_only = [](std::string text) {
    return text.insert(text.rfind('}'),
                       R"(, "data": {"images": null},
                          "layout": {"all": {"pp": 1}})");
  };
  const Scenario scenario =
      read_scenario(text_only(with_model(audio)), "variant.json", test::file_text);
  const Module &module = scenario.model.modules[0], &projector = scenario.model.modules[1];
  CHECK((module.kind == ModuleKind::audio && module.mel_bins == 8 && module.audio_tokens == 12));
  CHECK((module.norm == Norm::layer && module.attention_bias && module.mlp_bias));
  CHECK((projector.source == ModuleKind::audio && projector.merge == 3));
  CHECK(projector.projector_in == 3 * 32);
  check_round_trip(scenario);
  const auto refused = [&](std::string from, const std::string& to) {
    std::string text = text_only(with_model(audio));
    text.replace(text.find(from), from.size(), to);
    return test::refusal(text);
  };
  CHECK(refused("\"merge\": 3", "\"merge\": \"3x3\"").find("of audio frames must be a number") !=
        std::string::npos);
  CHECK(refused("\"merge\": 3", "\"merge\": 5")
            .find("merge must be a divisor of the 12 tokens of a clip, got 5") !=
        std::string::npos);
  CHECK(refused("\"mel_bins\": 8, ", "").find("key \"mel_bins\" is missing") != std::string::npos);
  CHECK(refused("\"mel_bins\": 8", "\"image_size\": 8").find("has no \"image_size\"") !=
        std::string::npos);
}

TEST_CASE("short convolutions are read block by block") {
  const Scenario scenario =
      read_variants(R"({"language": {"mixers": ["convolution", "full"], "short_conv": 3}})");
  const Module& language = scenario.model.modules[2];
  CHECK(language.mixers == std::vector<Mixer>{Mixer::convolution, Mixer::full});
  CHECK(language.short_conv == 3);
  check_round_trip(scenario);
  CHECK(test::refusal(with_model(R"({"language": {"mixers": ["convolution", "full"]}})"))
            .find("key \"short_conv\" is missing") != std::string::npos);
  CHECK(test::refusal(with_model(R"({"language": {"short_conv": 3}})"))
            .find("/short_conv: short_conv needs a \"convolution\" in \"mixers\"") !=
        std::string::npos);
}

TEST_CASE("masks are read by name, and rejected with linear attention or convolutions") {
  const Scenario scenario = read_variants(R"({"language": {"mask": "isolated"}})");
  CHECK(scenario.model.modules[2].mask == Mask::isolated);
  check_round_trip(scenario);
  CHECK(test::refusal(with_model(R"({"language": {"mask": "diagonal"}})")).find("/mask") !=
        std::string::npos);
  CHECK(
      test::refusal(with_model(
                        R"({"language": {"mixers": ["convolution", "full"], "short_conv": 3,
                                           "mask": "prefix"}})"))
          .find(
              "/mask: mask must be causal: linear attention and convolutions read all previous") !=
      std::string::npos);
}

TEST_CASE("the merge of image patches is a text") {
  CHECK(test::refusal(with_model(R"({"projector": {"merge": 2}})"))
            .find("of image patches must be a text") != std::string::npos);
}
