#include "shared/hf_config.h"

#include <doctest/doctest.h>

#include "shared/error.h"
#include "shared/presets.h"

using namespace polyphony;

namespace {

constexpr const char* kLlama =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192,
  "intermediate_size": 28672, "num_attention_heads": 64, "num_hidden_layers": 80, "num_key_value_heads": 8,
  "rope_theta": 500000.0, "rope_scaling": {"factor": 8.0}, "tie_word_embeddings": false, "vocab_size": 128256})";
constexpr const char* kQwenVl =
    R"({"model_type": "qwen2_vl", "hidden_size": 3584, "intermediate_size": 18944,
  "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "rope_theta": 1000000.0, "vocab_size": 152064,
  "use_sliding_window": false, "sliding_window": 32768,
  "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4, "num_heads": 16, "in_chans": 3,
                    "patch_size": 14, "spatial_merge_size": 2}})";

std::string refusal(const std::string& text, ModuleKind kind) {
  try {
    read_hf_config(text, "config.json", kind);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Llama's configuration is the preset of the same model") {
  const HfModule read = read_hf_config(kLlama, "config.json", ModuleKind::language);
  CHECK(read.module == find_preset("llama-3.1-70b")->module);
  CHECK(read.notes == find_preset("llama-3.1-70b")->notes);
}

TEST_CASE("a composite configuration gives both of its parts") {
  CHECK(read_hf_config(kQwenVl, "config.json", ModuleKind::language).module ==
        find_preset("qwen2.5-7b")->module);
  const HfModule vision = read_hf_config(kQwenVl, "config.json", ModuleKind::vision);
  CHECK(vision.module == find_preset("qwen2-vl-vision")->module);
  CHECK(vision.notes.size() == 2);
}

TEST_CASE("SigLIP's 384 pixels are cut to whole patches, as the model does") {
  const HfModule read = read_hf_config(
      R"({"model_type": "siglip", "vision_config": {"model_type": "siglip_vision_model",
      "hidden_size": 1152, "image_size": 384, "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27,
      "patch_size": 14}})",
      "config.json", ModuleKind::vision);
  CHECK(read.module == find_preset("siglip-so400m-14")->module);
}

TEST_CASE("refused configurations") {
  CHECK(refusal("[]", ModuleKind::language) ==
        "config.json: not an object (give the path of a Hugging Face config.json)");
  CHECK(refusal("{}", ModuleKind::language) ==
        "config.json: key \"model_type\" is missing (give the path of a Hugging Face config.json)");
  CHECK(refusal(R"({"model_type": "mamba"})", ModuleKind::language) ==
        "config.json: /model_type: model type \"mamba\" is not known as a language module (one of: "
        "llama, mistral, qwen2, qwen2_vl, "
        "qwen2_vl_text, mixtral, qwen3_moe, or write the dimensions instead of \"hf\")");
  CHECK(refusal(R"({"model_type": "llama", "num_hidden_layers": "80"})", ModuleKind::language) ==
        "config.json: /num_hidden_layers: a text is not allowed here (write a whole number from 1 "
        "to 2000)");
  CHECK(
      refusal(
          R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 10, "num_attention_heads": 4})",
          ModuleKind::language) ==
      "config.json: /hidden_size: 10 is not a multiple of 4 heads (is the configuration "
      "complete?)");
  CHECK(refusal(R"({"model_type": "llama"})", ModuleKind::language) ==
        "config.json: key \"num_hidden_layers\" is missing (is this the config.json of a supported "
        "model?)");
}
