// How every key of a config.json is treated.
#include "shared/model/hf_keys.h"

#include <doctest/doctest.h>

#include <map>
#include <sstream>

#include "shared/error.h"
#include "shared/model/hf_config.h"
#include "tests/shared/support/hf_refusal.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

using Keys = std::map<std::string, std::vector<std::string>>;

// "llama: attention_bias attention_dropout …", one line per model type.
Keys published_keys() {
  std::istringstream file(test::file_text("tests/shared/model/transformers_keys.txt"));
  Keys all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    std::vector<std::string>& keys = all[line.substr(0, line.find(':'))];
    for (std::string word; words >> word;) keys.push_back(word);
  }
  return all;
}

std::string with(std::string text, const std::string& key, const std::string& value) {
  return text.insert(1, "\"" + key + "\": " + value + ", ");
}

constexpr const char* kSizes =
    R"("hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4,
       "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100})";
std::string language(const std::string& type) {
  return R"({"model_type": ")" + type + "\", " + kSizes;
}
constexpr const char* kClip = R"({"model_type": "clip_vision_model", "hidden_size": 64,
    "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 28, "patch_size": 14})";

std::vector<std::string> notes(const std::string& text, ModuleKind kind = ModuleKind::language) {
  return read_hf_config(text, "config.json", kind).notes;
}
Module module_of(const std::string& text, ModuleKind kind = ModuleKind::language) {
  return read_hf_config(text, "config.json", kind).module;
}

}  // namespace

TEST_SUITE("hf keys") {
  TEST_CASE("every key of transformers is in the table") {
    const Keys published = published_keys();
    int keys = 0;
    for (const ModuleKind kind : {ModuleKind::language, ModuleKind::vision, ModuleKind::audio}) {
      for (const std::string& type : hf_types(kind)) {
        CAPTURE(type);
        // Models with their own code, outside transformers.
        if (type == "kimi_k2" || type == "kimi_vl" || type == "moonvit" || type == "internlm2" ||
            type == "intern_vit_6b")
          continue;
        // Older files use the composite's type for the vision module.
        const bool older = kind == ModuleKind::vision && type.starts_with("qwen") &&
                           !type.ends_with("_vision") && !type.ends_with("_encoder");
        const auto found = published.find(older ? type + "_vision" : type);
        REQUIRE(found != published.end());
        for (const std::string& key : found->second) {
          CAPTURE(key);
          CHECK(find_hf_key(type, kind, key) != nullptr);
          ++keys;
        }
      }
    }
    CHECK(keys > 900);
    CHECK(find_hf_key("llama", ModuleKind::language, "rms_norm_epsilon") == nullptr);
  }

  TEST_CASE("an unknown key is noted by name") {
    const std::string text =
        with(with(language("llama"), "norm_before_gate", "true"), "swa_every", "2");
    CHECK(notes(text) ==
          std::vector<std::string>{"unknown keys, ignored: \"norm_before_gate\", \"swa_every\""});
    CHECK(notes(language("llama")).empty());
    CHECK(notes(with(language("llama"), "swa_every", "null")).empty());
    CHECK(notes(with(language("llama"), "rope_parameters",
                     R"({"rope_type": "default", "twist": 2})")) ==
          std::vector<std::string>{"/rope_parameters/twist is unknown and ignored"});
  }

  TEST_CASE("norms take the epsilon from the file, else from the model's class") {
    CHECK(module_of(with(language("llama"), "rms_norm_eps", "1e-3")).norm_epsilon == 1e-3);
    CHECK(module_of(language("llama")).norm_epsilon == 1e-6);
    CHECK(module_of(language("qwen2_vl_text")).norm_epsilon == 1e-5);
    CHECK(module_of(with(kClip, "layer_norm_eps", "1e-4"), ModuleKind::vision).norm_epsilon ==
          1e-4);
    CHECK(module_of(kClip, ModuleKind::vision).norm_epsilon == 1e-5);
    CHECK(test::hf_refusal(with(language("llama"), "rms_norm_eps", "-1"), ModuleKind::language) ==
          "config.json: /rms_norm_eps: -1 is out of range (write a number from 0 to 1)");
  }

  TEST_CASE("gated activations are read from the file, or rejected") {
    CHECK(module_of(with(language("llama"), "hidden_act", "\"gelu_pytorch_tanh\"")).activation ==
          Activation::gelu);
    CHECK(module_of(with(language("llama"), "hidden_act", "\"silu\"")).activation ==
          Activation::silu);
    CHECK(
        test::hf_refusal(with(language("llama"), "hidden_act", "\"relu\""), ModuleKind::language) ==
        "config.json: /hidden_act: gated activation \"relu\" is not supported (use silu or "
        "gelu_pytorch_tanh)");
    CHECK(test::hf_refusal(with(kClip, "hidden_act", "\"relu\""), ModuleKind::vision) ==
          "config.json: /hidden_act: activation \"relu\" is not supported (use gelu)");
  }

  TEST_CASE("sliding windows are read from the file") {
    const auto mixers = [](const std::string& text) { return module_of(text).mixers; };
    using M = std::vector<Mixer>;
    CHECK(mixers(language("mistral")) == M{Mixer::window});  // the default of its class, 4,096 rows
    CHECK(module_of(language("mistral")).sliding_window == 4096);
    CHECK(mixers(with(language("mistral"), "sliding_window", "null")).empty());
    CHECK(module_of(with(language("mixtral"), "sliding_window", "7")).sliding_window == 7);
    CHECK(mixers(language("mixtral")).empty());
    // Qwen's: stated, but used only if the file enables them; from a block on, or block by block.
    const std::string named = with(language("qwen2"), "sliding_window", "8");
    CHECK(mixers(named).empty());
    const std::string used = with(named, "use_sliding_window", "true");
    CHECK(mixers(used).empty());  // from block 28 on
    CHECK(mixers(with(used, "max_window_layers", "3")) ==
          M{Mixer::full, Mixer::full, Mixer::full, Mixer::window});
    CHECK(mixers(with(named, "layer_types",
                      R"(["sliding_attention", "full_attention", "sliding_attention",
                          "full_attention"])")) == M{Mixer::window, Mixer::full});
    CHECK(test::hf_refusal(
              with(language("llama"), "layer_types", R"(["full_attention", "chunked_attention"])"),
              ModuleKind::language) ==
          "config.json: /layer_types/1: \"chunked_attention\" is not supported for this model type "
          "(all its blocks must be \"full_attention\")");
  }

  TEST_CASE("unsupported keys are rejected, keys that hardly matter are noted") {
    CHECK(test::hf_refusal(with(language("llama"), "partial_rotary_factor", "0.5"),
                           ModuleKind::language) ==
          "config.json: /partial_rotary_factor: \"partial_rotary_factor\": 0.5 is not supported "
          "(all of a head is rotated in this program: \"partial_rotary_factor\": 1)");
    CHECK(test::hf_refusal(with(language("llama"), "partial_rotary_factor", "1.0"),
                           ModuleKind::language)
              .empty());
    for (const auto& [type, key, value] :
         {std::tuple("qwen2", "attention_bias", "true"), std::tuple("qwen3", "mlp_bias", "true"),
          std::tuple("llama", "final_logit_softcapping", "30.0"),
          std::tuple("llama", "embedding_multiplier", "12"),
          std::tuple("gemma3_text", "use_bidirectional_attention", "true")})
      CHECK(test::hf_refusal(with(with(language(type), "sliding_window", "4"), key, value),
                             ModuleKind::language)
                .starts_with(std::string("config.json: /") + key + ": "));
    CHECK(notes(with(language("qwen2"), "attention_dropout", "0.1")) ==
          std::vector<std::string>{"\"attention_dropout\": dropout is omitted"});
    CHECK(notes(with(language("qwen2"), "attention_dropout", "0.0")).empty());
  }

  TEST_CASE("vision types of current files, and keys of the composite configuration") {
    const std::string tower =
        R"({"depth": 2, "embed_dim": 64, "hidden_size": 128, "num_heads": 4, "patch_size": 14)";
    const Module old = module_of(R"({"model_type": "qwen2_vl", "vision_config": )" + tower + "}}",
                                 ModuleKind::vision);
    CHECK(old == module_of(R"({"model_type": "qwen2_vl", "vision_config": )" + tower +
                               R"(, "model_type": "qwen2_vl_vision"}})",
                           ModuleKind::vision));
    CHECK(old.norm_epsilon == 1e-6);
    const std::string llava =
        R"({"model_type": "llava", "vision_feature_layer": -2, "vision_config": )" +
        std::string(kClip) + "}";
    CHECK(notes(llava, ModuleKind::vision).back() ==
          "\"vision_feature_layer\": blocks after block 1 of 2 are omitted");
    CHECK(module_of(llava, ModuleKind::vision).layers == 1);
    const std::string last =
        R"({"model_type": "llava", "vision_feature_layer": -1, "vision_config": )" +
        std::string(kClip) + "}";
    CHECK(module_of(last, ModuleKind::vision).layers == 2);
    CHECK_FALSE(module_of(last, ModuleKind::vision).final_norm);
    const std::string beyond =
        R"({"model_type": "llava", "vision_feature_layer": 3, "vision_config": )" +
        std::string(kClip) + "}";
    CHECK(test::hf_refusal(beyond, ModuleKind::vision)
              .starts_with("config.json: /vision_feature_layer: 3 is none of the 2 blocks"));
    // The composite configuration states whether the output matrix is the embedding.
    const std::string whole = R"({"model_type": "qwen2_vl", "tie_word_embeddings": true,
                                  "text_config": )" +
                              language("qwen2_vl_text") + "}";
    CHECK(module_of(whole).tied);
    // Gemma's newer files have a RoPE base for each kind of block.
    const Module gemma =
        module_of(with(with(language("gemma3_text"), "sliding_window", "4"), "rope_parameters",
                       R"({"full_attention": {"rope_type": "default", "rope_theta": 5e5},
                 "sliding_attention": {"rope_type": "default", "rope_theta": 2e4}})"));
    CHECK(gemma.rope_theta == 5e5);
    CHECK(gemma.local_rope_theta == 2e4);
  }
}

}  // namespace polyphony
