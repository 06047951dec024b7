// Every parameter of every family stands in the tensors of its table exactly once: scattered to
// tensors and gathered again, whole or by shards, it is the same.
#include "shared/weights/arrangement.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "shared/model/hf_config.h"
#include "shared/weights/pretrained.h"

namespace polyphony {
namespace {

const char* const kSizes =
    R"("hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4,
       "num_key_value_heads": 2, "vocab_size": 96, "tie_word_embeddings": false)";
const char* const kSquare =
    R"("hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
       "image_size": 16, "patch_size": 4)";

struct Family {
  ModuleKind kind;
  std::string config;  // model_type first
};
std::vector<Family> families() {
  const auto language = [](const std::string& rest) {
    return Family{ModuleKind::language, std::string("{") + kSizes + ", " + rest + "}"};
  };
  return {
      language(R"("model_type": "llama", "attention_bias": true, "mlp_bias": true)"),
      language(R"("model_type": "mistral")"),
      language(R"("model_type": "qwen2")"),
      language(R"("model_type": "qwen3", "head_dim": 12)"),
      language(R"("model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2)"),
      language(R"("model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2,
                  "moe_intermediate_size": 20, "norm_topk_prob": true)"),
      language(R"("model_type": "gemma3_text", "head_dim": 8, "sliding_window": 5)"),
      language(R"("model_type": "gpt_oss", "head_dim": 8, "num_local_experts": 4,
                  "num_experts_per_tok": 2, "sliding_window": 5)"),
      language(R"("model_type": "deepseek_v3", "q_lora_rank": 16, "kv_lora_rank": 12,
                  "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8,
                  "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 20,
                  "first_k_dense_replace": 1, "n_shared_experts": 1)"),
      language(R"("model_type": "deepseek_v2", "kv_lora_rank": 12, "qk_rope_head_dim": 8,
                  "qk_nope_head_dim": 8, "v_head_dim": 8, "n_routed_experts": 4,
                  "num_experts_per_tok": 2, "moe_intermediate_size": 20, "n_shared_experts": 1)"),
      language(R"("model_type": "qwen3_next", "head_dim": 8, "num_experts": 4,
                  "num_experts_per_tok": 2, "moe_intermediate_size": 20,
                  "shared_expert_intermediate_size": 24, "linear_num_key_heads": 2,
                  "linear_num_value_heads": 4, "linear_key_head_dim": 8,
                  "linear_value_head_dim": 8, "full_attention_interval": 2)"),
      language(R"("model_type": "lfm2", "block_auto_adjust_ff_dim": false,
                  "layer_types": ["conv", "full_attention", "conv", "full_attention"])"),
      {ModuleKind::vision,
       std::string(R"({"model_type": "siglip_vision_model", )") + kSquare + "}"},
      {ModuleKind::vision, std::string(R"({"model_type": "clip_vision_model", )") + kSquare + "}"},
      {ModuleKind::vision,
       std::string(R"({"model_type": "pixtral", "hidden_act": "silu", )") + kSquare + "}"},
      {ModuleKind::vision, std::string(R"({"model_type": "intern_vit_6b", "qkv_bias": true,
                                           "norm_type": "layer_norm", )") +
                               kSquare + "}"},
      {ModuleKind::vision, std::string(R"({"model_type": "internvl_vision", "attention_bias": true,
                                           "use_mean_pooling": false, )") +
                               kSquare + "}"},
      {ModuleKind::vision,
       R"({"model_type": "qwen2_vl_vision", "depth": 2, "embed_dim": 32, "mlp_ratio": 2,
           "num_heads": 4, "patch_size": 4, "hidden_size": 32})"},
      {ModuleKind::vision,
       R"({"model_type": "qwen2_5_vl_vision", "depth": 2, "hidden_size": 32, "num_heads": 4,
           "intermediate_size": 48, "patch_size": 4, "window_size": 8})"},
      {ModuleKind::audio,
       R"({"model_type": "whisper", "d_model": 32, "encoder_layers": 2,
           "encoder_attention_heads": 4, "encoder_ffn_dim": 48, "num_mel_bins": 8,
           "max_source_positions": 20})"}};
}

std::vector<double> counting(std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(i + 2);  // less 1 for Gemma, still not 0
  return values;
}

// The parameter's tensors as bytes.
std::map<std::string, std::string> scattered(const Arrangement& arrangement,
                                             const std::vector<double>& values) {
  std::map<std::string, std::string> tensors;
  for (const TensorPart& part : arrangement.parts)
    tensors[part.tensor] = scatter(arrangement, part.tensor,
                                   reinterpret_cast<const std::byte*>(values.data()), "F64", "F64");
  return tensors;
}

std::vector<double> gathered(const Arrangement& arrangement,
                             const std::map<std::string, std::string>& tensors,
                             std::vector<ElementRun> runs, std::int64_t count) {
  std::sort(runs.begin(), runs.end(),
            [](const ElementRun& a, const ElementRun& b) { return a.global < b.global; });
  std::vector<double> values(static_cast<std::size_t>(count));
  gather(
      arrangement, runs,
      [&](const std::string& name) {
        return TensorBytes{reinterpret_cast<const std::byte*>(tensors.at(name).data()), "F64"};
      },
      "F64", reinterpret_cast<std::byte*>(values.data()));
  return values;
}

}  // namespace

TEST_CASE("weights: a parameter scattered to published tensors and gathered again is the same") {
  for (const Family& family : families()) {
    CAPTURE(family.config);
    Module module = read_hf_config(family.config, "config.json", family.kind).module;
    module.name = "m";
    const TensorFamily* table =
        find_tensor_family(family.kind, hf_model_type(family.config, "config.json", family.kind));
    REQUIRE(table != nullptr);
    const TensorNames names(module, *table);
    std::map<std::string, std::string> owner;
    for (const Parameter& parameter : parameters(module)) {
      CAPTURE(parameter.name);
      const Arrangement arrangement = names.of(parameter);
      const std::vector<double> values = counting(parameter.count());
      const std::map<std::string, std::string> tensors = scattered(arrangement, values);
      // No element of any tensor is left out, and no tensor belongs to two parameters.
      for (const auto& [name, bytes] : tensors) {
        CHECK(owner.insert({name, parameter.name}).second);
        std::vector<double> stored(bytes.size() / sizeof(double));
        std::memcpy(stored.data(), bytes.data(), bytes.size());
        CHECK(std::find(stored.begin(), stored.end(), 0) == stored.end());
      }
      std::vector<double> expected = values;
      if (family.kind == ModuleKind::audio && parameter.name.ends_with("qkv.bias"))
        for (int head = 0; head < module.heads; ++head)  // Whisper's keys have no bias
          std::fill_n(expected.begin() + (3 * head + 1) * module.head_dim, module.head_dim, 0);
      const std::vector<double> whole =
          gathered(arrangement, tensors, parameter.runs({}), parameter.count());
      CHECK(whole == expected);
      for (int rank = 0; rank < 2; ++rank) {
        const ShardIndex shard{2, rank, parameter.expert ? 2 : 1, parameter.expert ? rank : 0};
        const std::vector<double> part =
            gathered(arrangement, tensors, parameter.runs(shard), parameter.local_count(shard));
        for (const ElementRun& run : parameter.runs(shard))
          for (std::int64_t i = 0; i < run.count; ++i)
            REQUIRE(part[static_cast<std::size_t>(run.local + i)] ==
                    expected[static_cast<std::size_t>(run.global + i)]);
      }
    }
  }
}

TEST_CASE("weights: Gemma's norms are stored less 1, two frames as halves") {
  Module gemma = read_hf_config(families()[6].config, "config.json", ModuleKind::language).module;
  gemma.name = "m";
  const TensorNames names(gemma, *find_tensor_family(ModuleKind::language, "gemma3_text"));
  for (const Parameter& parameter : parameters(gemma)) {
    if (parameter.name != "m.block0.norm1.weight") continue;
    const auto tensors = scattered(names.of(parameter), std::vector<double>(32, 1.25));
    double first = 0;
    std::memcpy(&first, tensors.at("model.layers.0.input_layernorm.weight").data(), sizeof first);
    CHECK(first == 0.25);
  }
}

}  // namespace polyphony
