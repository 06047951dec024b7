#include "sim/question/question.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "shared/chunk/parameters.h"
#include "shared/error.h"
#include "sim/question/stack_limits.h"

namespace polyphony::sim {
namespace {

// A composite configuration as files of the hub state it: LLaVA's leaves defaults out.
constexpr const char* kLlava = R"({"model_type": "llava", "image_token_index": 32000,
  "vision_feature_layer": -2, "vision_feature_select_strategy": "default",
  "text_config": {"model_type": "llama", "vocab_size": 32064},
  "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336,
    "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14,
    "projection_dim": 768, "vocab_size": 32000}})";

std::string load(const std::string& path) {
  if (path == "llava/config.json" || path == "/tmp/llava/config.json") return kLlava;
  throw InputError(path, "", "cannot be read", "check the path");
}

AskOptions asking(std::vector<std::string> models, const std::string& gpus) {
  AskOptions question;
  question.models = std::move(models);
  question.gpus = parse_gpus(gpus);
  return question;
}

Scenario scenario_of(const AskOptions& question) {
  return read_scenario(asked_scenario(question, load, "").text, "q.json", load, {});
}

std::string refusal(const AskOptions& question) {
  try {
    asked_scenario(question, load, "");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool assumes(const AskedScenario& asked, const std::string& option) {
  for (const std::string& line : asked.assumed)
    if (line.find(option) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("counts as people write them") {
  CHECK(parse_count("8192", "--seq") == 8192);
  CHECK(parse_count("8k", "--seq") == 8192);
  CHECK(parse_count("1.5k", "--seq") == 1536);
  CHECK(parse_count("1M", "--seq") == 1'048'576);
  CHECK(parse_count("1e3", "--seq") == 1000);
  for (const char* text : {"", "k", "0", "-8", "8q", "1.5", "nan", "inf", "1e30", "8 k"})
    CHECK_THROWS_AS(parse_count(text, "--seq"), InputError);
}

TEST_CASE("a language model and accelerators are a question; the rest is assumed, and said") {
  const AskedScenario asked = asked_scenario(asking({"llama-3.1-8b"}, "8xH100"), load, "");
  CHECK(assumes(asked, "--seq"));
  CHECK(assumes(asked, "--global-batch"));
  const Scenario scenario = read_scenario(asked.text, "q.json", load, {});
  CHECK(scenario.model.modules.size() == 1);
  CHECK(scenario.cluster.ranks() == 8);
  CHECK(scenario.data.sequence == 8192);
  CHECK(scenario.data.global_batch == 512);  // 4 Mi tokens

  AskOptions stated = asking({"llama-3.1-8b"}, "1024x8xH100");
  stated.sequence = 4096;
  CHECK(scenario_of(stated).data.global_batch == 8192);  // a sample for each accelerator
  stated.gpus = parse_gpus("?xH100");
  stated.gpus.nodes = 1024;
  CHECK(scenario_of(stated).data.global_batch == 1024);  // the same on any number of nodes
  stated.global_batch = 96;
  CHECK(scenario_of(stated).data.global_batch == 96);
  CHECK_FALSE(assumes(asked_scenario(stated, load, ""), "--seq"));
}

TEST_CASE("one composite configuration is the whole model") {
  AskOptions question = asking({"llava/config.json"}, "8xH100");
  question.images = "2";
  const Scenario scenario = scenario_of(question);
  REQUIRE(scenario.model.modules.size() == 3);
  std::int64_t all = 0;
  for (const Module& module : scenario.model.modules) all += parameter_count(module);
  // transformers' LlavaForConditionalGeneration of this file has 7,063,427,072 parameters, of which
  // this model leaves out the last block of CLIP and its norm, which LLaVA does not read.
  CHECK(static_cast<double>(all) == doctest::Approx(7'063'427'072).epsilon(0.005));
  CHECK(scenario.data.sequence == 8192);
  // The same file, from a folder elsewhere: its path is relative to where the question is saved.
  question.models = {"/tmp/llava/config.json"};
  CHECK(scenario_of(question).model.modules.size() == 3);
}

TEST_CASE("an encoder and a language model get a projector") {
  AskOptions question = asking({"siglip-so400m-14", "llama-3.1-8b"}, "8xH100");
  question.images = "8x784";
  question.train = "projector,lora:language";
  const Scenario scenario = scenario_of(question);
  REQUIRE(scenario.model.modules.size() == 3);
  CHECK(scenario.model.modules[0].trainable == Trainable::frozen);
  CHECK(scenario.model.modules[0].image_size == 28 * 14);
  CHECK(scenario.model.modules[1].kind == ModuleKind::projector);
  CHECK(scenario.model.modules[1].trainable == Trainable::full);
  CHECK(scenario.model.modules[1].merge == 2);
  CHECK(scenario.model.modules[2].trainable == Trainable::lora);
}

TEST_CASE("what contradicts itself is refused by the option's name") {
  CHECK(refusal(asking({}, "H100")).find("--model") == 0);
  CHECK(refusal(asking({"llama-3.1-80b"}, "H100")).find("llama-3.1-8b") != std::string::npos);
  CHECK(refusal(asking({"llama-3.1-8b", "llama-3.1-70b"}, "H100")).find("two language") !=
        std::string::npos);
  CHECK(refusal(asking({"siglip-so400m-14"}, "H100")).find("no language model") !=
        std::string::npos);
  CHECK(refusal(asking({"llava/config.json", "llama-3.1-8b"}, "H100")).find("composite") !=
        std::string::npos);
  CHECK(refusal(asking({"nowhere/config.json"}, "H100")).find("nowhere/config.json") == 0);
  AskOptions question = asking({"llama-3.1-8b"}, "H100");
  question.images = "8";
  CHECK(refusal(question).find("--images") == 0);
  question = asking({"siglip-so400m-14", "llama-3.1-8b"}, "H100");
  question.images = "8x1000";  // no square
  CHECK(refusal(question).find("is not a square") != std::string::npos);
  question.images = "100x784";  // 19,600 tokens
  CHECK(refusal(question).find("--seq") == 0);
  question.images = "8";
  question.train = "langauge";
  CHECK(refusal(question).find("language") != std::string::npos);
}

TEST_CASE("a stack's question is searched among what the stack can run") {
  AskOptions question = asking({"llama-3.1-8b"}, "2x8xH100");
  question.stack = "hf-eager";
  const nlohmann::json plain = nlohmann::json::parse(asked_scenario(question, load, "").text);
  CHECK(plain["search"]["language"]["tp"] == 1);
  CHECK(plain["search"]["language"]["pp"] == 1);
  question.stack = "megatron-core";
  const nlohmann::json core = nlohmann::json::parse(asked_scenario(question, load, "").text);
  CHECK_FALSE(core["search"]["language"].contains("tp"));
  CHECK(core["search"]["placement"] == nlohmann::json{"homogeneous"});
  CHECK(find_limits("polyphony") == nullptr);
}

}  // namespace polyphony::sim
