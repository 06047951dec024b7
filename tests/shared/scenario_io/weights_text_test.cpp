// The key "weights" of a module, and the data source "text".
#include <doctest/doctest.h>

#include <filesystem>

#include "shared/error.h"
#include "shared/files/whole.h"
#include "shared/scenario_io/data_set.h"
#include "shared/scenario_io/scenario_json.h"
#include "tests/shared/support/temp_folder.h"

namespace polyphony {
namespace {

using test::spill;
using test::TempFolder;

const char* const kConfig =
    R"({"model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96,
        "tie_word_embeddings": false)";

std::string scenario_of(const std::string& module, const std::string& data) {
  return R"({"polyphony": 1, "model": {"language": )" + module +
         R"(}, "cluster": {"node": "this-machine", "ranks": 1}, "data": )" + data + "}";
}
const std::string kSynthetic =
    R"({"source": "synthetic", "text": {"tokens": 8}, "global_batch": 1})";

Scenario read_weights(const std::string& text, const std::string& file) {
  return read_scenario(text, file, [](const std::string& path) { return read_file(path); });
}
std::string weights_refusal(const std::string& text, const std::string& file) {
  try {
    read_weights(text, file);
  } catch (const InputError& error) {
    return error.pointer + ": " + error.what_is_wrong + " | " + error.hint;
  }
  return "";
}

// A tokenizer whose tokens are the letters a to d and the space.
const char* const kWeightsTokenizer =
    R"({"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
        "post_processor": null, "decoder": null,
        "model": {"type": "BPE", "dropout": null, "unk_token": null,
                  "continuing_subword_prefix": null, "end_of_word_suffix": null,
                  "fuse_unk": false, "byte_fallback": false,
                  "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, " ": 4}, "merges": []}})";

}  // namespace

TEST_CASE("a folder of weights gives the module's dimensions and its model type") {
  const TempFolder folder;
  spill(folder / "model/config.json", std::string(kConfig) + "}");
  const Scenario scenario = read_weights(
      scenario_of(R"({"weights": "model", "train": "lora", "lora_rank": 2})", kSynthetic),
      folder / "scenario.json");
  CHECK(scenario.model.modules[0].hidden == 32);
  CHECK(scenario.model.modules[0].trainable == Trainable::lora);
  CHECK(scenario.weights ==
        std::vector<ModuleWeights>{{folder / "model", folder / "model/config.json", "llama"}});
  // The resolved form needs no config.json, wherever it is read.
  const std::string moved = movable_text(scenario, "/somewhere");
  std::filesystem::remove_all(folder / "model");
  const Scenario again = read_weights(moved, "/elsewhere/scenario.json");
  CHECK(again.weights == scenario.weights);
  CHECK(again.model == scenario.model);
}

TEST_CASE("a module with only a config.json begins at random and keeps its model type") {
  const TempFolder folder;
  spill(folder / "config.json", std::string(kConfig) + "}");
  const Scenario scenario =
      read_weights(scenario_of(R"({"hf": "config.json"})", kSynthetic), folder / "scenario.json");
  CHECK(scenario.weights == std::vector<ModuleWeights>{{"", folder / "config.json", "llama"}});
  CHECK(read_weights(resolved_text(scenario), "x.json").weights == scenario.weights);
}

TEST_CASE(
    "weights of a model that computes something else are refused, and the message says what") {
  const TempFolder folder;
  spill(folder / "model/config.json",
        std::string(kConfig) + R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4}})");
  const std::string refused =
      weights_refusal(scenario_of(R"({"weights": "model"})", kSynthetic), folder / "scenario.json");
  CHECK(refused.find("/model/language/weights: these weights do not mean the same in this program: "
                     "RoPE scaling for long contexts is not modeled: \"yarn\"") == 0);
  CHECK(refused.find("\"hf\"") != std::string::npos);
  CHECK(
      weights_refusal(scenario_of(R"({"weights": "absent"})", kSynthetic), folder / "scenario.json")
          .find("/model/language/weights: ") == 0);
}

// The config.json of a LLaVA, in which the rows of the tower's last block but one are read.
std::string llava_config() {
  return R"({"model_type": "llava", "vision_feature_layer": -2, "text_config": )" +
         std::string(kConfig) + R"(}, "vision_config": {"model_type": "clip_vision_model",
      "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4,
      "image_size": 16, "patch_size": 4}})";
}
std::string whole_scenario(const std::string& model) {
  return R"({"polyphony": 1, "model": )" + model +
         R"(, "cluster": {"node": "this-machine", "ranks": 1}, "data": {"source": "synthetic",
            "text": {"tokens": 8}, "images": {"per_sample": 1}, "global_batch": 1}})";
}

TEST_CASE("a composite model's folder gives its modules") {
  const TempFolder folder;
  spill(folder / "llava/config.json", llava_config());
  const std::string file = folder / "scenario.json";
  const Scenario scenario =
      read_weights(whole_scenario(R"({"weights": "llava", "language": {"train": "frozen"},
                         "projector": {"weights": "none"}})"),
                   file);
  const std::vector<Module>& modules = scenario.model.modules;
  REQUIRE(modules.size() == 3);
  CHECK((modules[0].name == "vision" && modules[0].layers == 2 && modules[0].input_norm));
  CHECK_FALSE(modules[0].final_norm);
  CHECK((modules[1].projector_in == 24 && modules[1].projector_hidden == 32));
  CHECK(modules[2].trainable == Trainable::frozen);
  const ModuleWeights vision{folder / "llava", folder / "llava/config.json", "clip_vision_model"};
  CHECK(scenario.weights ==
        std::vector<ModuleWeights>{
            vision, {}, {folder / "llava", folder / "llava/config.json", "llama"}});
  // The same from a scenario that is written out, wherever it is read.
  const Scenario again =
      read_weights(movable_text(scenario, "/somewhere"), "/elsewhere/scenario.json");
  CHECK((again.model == scenario.model && again.weights == scenario.weights));
  // A file that extends another says so, too.
  spill(folder / "base.json", whole_scenario(R"({"weights": "llava"})"));
  const Scenario extended = read_weights(
      R"({"extends": "base.json", "model": {"projector": {"weights": "none"}}})", file);
  CHECK((extended.weights[0] == vision && extended.weights[1] == ModuleWeights{}));
  // Without images there are no modules for them to go through.
  spill(folder / "text/config.json", std::string(kConfig) + "}");
  CHECK(
      read_weights(
          scenario_of("null", kSynthetic).replace(17, 27, R"("model": {"weights": "text"})"), file)
          .model.modules.size() == 1);
  CHECK(
      weights_refusal(whole_scenario(R"({"weights": "absent"})"), file).find("/model/weights: ") ==
      0);
  CHECK(weights_refusal(whole_scenario(R"({"weights": 3})"), file).find("/model/weights: ") == 0);
}

TEST_CASE("a text is cut into samples whose tokens predict the next ones") {
  const TempFolder folder;
  spill(folder / "tokenizer.json", kWeightsTokenizer);
  spill(folder / "page.txt", "abcd dcba a");
  const std::string module = R"({"layers": 1, "hidden": 8, "heads": 2, "ffn": 8, "vocab": 5})";
  const std::string data =
      R"({"source": {"text": "page.txt", "tokenizer": "tokenizer.json"}, "sequence": 4,
          "global_batch": 2})";
  Scenario scenario = read_weights(scenario_of(module, data), folder / "scenario.json");
  const auto load = [](const std::string& path) { return read_file(path); };
  const TextSamples text = text_samples(scenario, load, folder / "page.txt");
  CHECK(text.ids == std::vector<std::int32_t>{0, 1, 2, 3, 4, 3, 2, 1, 0, 4, 0});
  // Ten tokens have a next one: 4 + 4 + 2.
  REQUIRE(text.samples.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int32_t tokens = i < 2 ? 4 : 2;
    CHECK(text.samples[i] ==
          Sample{static_cast<std::uint32_t>(i), {{Modality::text, tokens, tokens}}});
  }
  load_samples(scenario, "", load);
  CHECK(scenario.data.samples == text.samples);
  CHECK(std::get<TextData>(read_weights(resolved_text(scenario), "x.json").data.source) ==
        std::get<TextData>(scenario.data.source));
}

TEST_CASE("texts that cannot be used are refused by name") {
  const TempFolder folder;
  spill(folder / "tokenizer.json", kWeightsTokenizer);
  spill(folder / "page.txt", "a");
  const auto module = [](int vocab) {
    return R"({"layers": 1, "hidden": 8, "heads": 2, "ffn": 8, "vocab": )" + std::to_string(vocab) +
           "}";
  };
  const std::string source =
      R"({"global_batch": 1, "source": {"text": "page.txt", "tokenizer": "tokenizer.json"})";
  const auto reading = [&](const std::string& text) {
    try {
      text_samples(
          read_weights(text, folder / "scenario.json"),
          [](const std::string& path) { return read_file(path); }, folder / "page.txt");
    } catch (const InputError& error) {
      return error.what_is_wrong;
    }
    return std::string();
  };
  CHECK(reading(scenario_of(module(5), source + R"(, "sequence": 4})")) ==
        "must have at least two tokens");
  CHECK(reading(scenario_of(module(4), source + R"(, "sequence": 4})")) ==
        "has 5 ids, but the language module's vocabulary has 4");
  CHECK(weights_refusal(scenario_of(module(5), source + "}"), folder / "scenario.json")
            .find("key \"sequence\" is missing") != std::string::npos);
  CHECK(weights_refusal(
            scenario_of(module(5),
                        R"({"source": {"text": "page.txt"}, "sequence": 4, "global_batch": 1})"),
            folder / "scenario.json")
            .find("key \"tokenizer\" is missing") != std::string::npos);
  spill(folder / "page.txt", "a€");
  CHECK(reading(scenario_of(module(5), source + R"(, "sequence": 4})")) != "");
}

}  // namespace polyphony
