#include "shared/model/hf_config.h"

#include <doctest/doctest.h>

#include "shared/error.h"
#include "shared/model/presets.h"
#include "tests/shared/support/hf_refusal.h"

using namespace polyphony;

namespace {

constexpr const char* kLlama =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192,
  "intermediate_size": 28672, "num_attention_heads": 64, "num_hidden_layers": 80, "num_key_value_heads": 8,
  "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
  "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
  "tie_word_embeddings": false, "vocab_size": 128256})";
constexpr const char* kQwenVl =
    R"({"model_type": "qwen2_vl", "hidden_size": 3584, "intermediate_size": 18944,
  "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "rope_theta": 1000000.0, "vocab_size": 152064,
  "rms_norm_eps": 1e-06, "use_sliding_window": false, "sliding_window": 32768, "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
  "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4, "num_heads": 16, "in_chans": 3,
                    "patch_size": 14, "spatial_merge_size": 2, "hidden_act": "quick_gelu"}})";
constexpr const char* kQwen25Vl =
    R"({"model_type": "qwen2_5_vl", "text_config": {"model_type": "qwen2_5_vl_text", "hidden_size": 3584,
  "intermediate_size": 18944, "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152064,
  "rms_norm_eps": 1e-06, "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0, "mrope_section": [16, 24, 24]}},
  "vision_config": {"model_type": "qwen2_5_vl", "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
                    "in_chans": 3, "patch_size": 14, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31],
                    "hidden_act": "silu"}})";
constexpr const char* kWhisper =
    R"({"model_type": "whisper", "d_model": 1280, "encoder_layers": 32, "encoder_attention_heads": 20,
  "encoder_ffn_dim": 5120, "decoder_layers": 32, "num_mel_bins": 128, "max_source_positions": 1500, "vocab_size": 51866})";
constexpr const char* kIntern =
    R"({"model_type": "intern_vit_6b", "hidden_size": 3200, "image_size": 448, "intermediate_size": 12800,
  "num_attention_heads": 25, "num_hidden_layers": 45, "patch_size": 14, "qk_normalization": true, "qkv_bias": false,
  "norm_type": "rms_norm", "hidden_act": "gelu"})";

}  // namespace

TEST_CASE("Llama's configuration equals the preset of the same model") {
  const HfModule read = read_hf_config(kLlama, "config.json", ModuleKind::language);
  CHECK(read.module == find_preset("llama-3.1-70b")->module);
  CHECK(read.notes == find_preset("llama-3.1-70b")->notes);
}

TEST_CASE("a composite configuration gives both of its parts") {
  CHECK(read_hf_config(kQwenVl, "config.json", ModuleKind::language).module ==
        find_preset("qwen2-vl-7b")->module);
  const HfModule vision = read_hf_config(kQwenVl, "config.json", ModuleKind::vision);
  CHECK(vision.module == find_preset("qwen2-vl-vision")->module);
  CHECK(vision.notes == find_preset("qwen2-vl-vision")->notes);
  CHECK(vision.image_size_notes.size() == 1);
  CHECK(read_hf_config(kQwen25Vl, "config.json", ModuleKind::language).module ==
        find_preset("qwen2-vl-7b")->module);
  CHECK(read_hf_config(kQwen25Vl, "config.json", ModuleKind::vision).module ==
        find_preset("qwen2.5-vl-vision")->module);
}

TEST_CASE("dense decoder families equal their presets") {
  const auto read = [](const std::string& type, const std::string& more) {
    return read_hf_config(R"({"model_type": ")" + type + R"(", "hidden_size": 4096,
        "num_attention_heads": 32, "num_key_value_heads": 8, )" +
                              more + "}",
                          "config.json", ModuleKind::language);
  };
  CHECK(read("qwen3", R"("num_hidden_layers": 36, "intermediate_size": 12288, "head_dim": 128,
             "rope_theta": 1000000, "vocab_size": 151936, "attention_bias": false)")
            .module == find_preset("qwen3-8b")->module);
  const HfModule mistral = read("mistral", R"("num_hidden_layers": 32, "intermediate_size": 14336,
                                "vocab_size": 32000, "sliding_window": 4096,
                                "rms_norm_eps": 1e-05)");
  Module windows = find_preset("mistral-7b")->module;  // the preset has no windows
  windows.mixers = {Mixer::window};
  windows.sliding_window = 4096;
  CHECK(mistral.module == windows);
  CHECK(mistral.notes.empty());
  CHECK(read("llama", R"("num_hidden_layers": 32, "intermediate_size": 14336, "vocab_size": 128256,
             "rope_theta": 500000, "attention_bias": true, "mlp_bias": true)")
            .module.attention_bias);
}

TEST_CASE("encoders: InternViT and Whisper") {
  const HfModule intern = read_hf_config(kIntern, "config.json", ModuleKind::vision);
  CHECK(intern.module == find_preset("internvit-6b")->module);
  CHECK(intern.notes == find_preset("internvit-6b")->notes);
  const HfModule whisper = read_hf_config(kWhisper, "config.json", ModuleKind::audio);
  CHECK(whisper.module == find_preset("whisper-large-v3")->module);
  CHECK(whisper.notes == find_preset("whisper-large-v3")->notes);
}

TEST_CASE("SigLIP's 384 pixels are cropped to whole patches, as in the model") {
  const HfModule read = read_hf_config(
      R"({"model_type": "siglip", "vision_config": {"model_type": "siglip_vision_model",
      "hidden_size": 1152, "image_size": 384, "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27,
      "patch_size": 14}})",
      "config.json", ModuleKind::vision);
  CHECK(read.module == find_preset("siglip-so400m-14")->module);
}

TEST_CASE("unsupported configurations are rejected") {
  CHECK(test::hf_refusal("[]", ModuleKind::language) ==
        "config.json: is not a JSON object (give the path of a Hugging Face config.json)");
  CHECK(test::hf_refusal("{}", ModuleKind::language) ==
        "config.json: key \"model_type\" is missing (give the path of a Hugging Face config.json)");
  CHECK(
      test::hf_refusal(R"({"model_type": "mamba"})", ModuleKind::language) ==
      "config.json: /model_type: model type \"mamba\" is not a supported language module (one of: "
      "llama, internlm2, mistral, phi3, mixtral, qwen2, "
      "qwen2_vl, qwen2_vl_text, qwen2_5_vl, qwen2_5_vl_text, qwen3, qwen3_vl_text, qwen3_moe, "
      "qwen3_omni_moe_text, "
      "qwen3_vl_moe_text, qwen3_next, qwen3_5_text, qwen3_5_moe_text, deepseek_v2, deepseek_v3, "
      "kimi_k2, kimi_vl, gemma3_text, gpt_oss, lfm2, or write the "
      "dimensions instead of \"hf\")");
  CHECK(
      test::hf_refusal(R"({"model_type": "qwen2_5_vl", "depth": 2, "hidden_size": 8, "num_heads": 2,
                    "intermediate_size": 8, "patch_size": 14, "window_size": 100})",
                       ModuleKind::vision) ==
      "config.json: /window_size: 100 pixels are not a multiple of patches of 14 (check that "
      "the configuration is complete)");
  CHECK(test::hf_refusal(R"({"model_type": "llama", "num_hidden_layers": "80"})",
                         ModuleKind::language) ==
        "config.json: /num_hidden_layers: a text is not allowed here (write a whole number from 1 "
        "to 2000)");
  CHECK(
      test::hf_refusal(
          R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 10, "num_attention_heads": 4})",
          ModuleKind::language) ==
      "config.json: /hidden_size: 10 is not a multiple of 4 heads (check that the "
      "configuration is complete)");
  CHECK(
      test::hf_refusal(R"({"model_type": "llama"})", ModuleKind::language) ==
      "config.json: key \"num_hidden_layers\" is missing (check that this is the config.json of a "
      "supported model)");
}
