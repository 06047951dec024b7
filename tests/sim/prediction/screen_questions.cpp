#include "tests/sim/prediction/screen_questions.h"

#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {
namespace {

Question ask(const std::string& name, const std::string& model, const std::string& cluster,
             const std::string& data, const std::string& precision, bool small) {
  const std::string text = R"({"polyphony": 1, "model": {)" + model + R"(}, "cluster": {)" +
                           cluster + R"(}, "data": {"source": "synthetic", )" + data +
                           R"(}, "training": {"precision": ")" + precision + R"("}})";
  return {name, read_scenario(text, name, test::file_text), {}, small};
}

Question shipped(const std::string& name, int ranks) {
  Question question{name, test::scenario_at("scenarios/" + name + ".json"), {}, true};
  question.scenario.layout.reset();
  question.scenario.cluster.ranks_per_node = ranks;
  return question;
}

const std::string kWords = R"("text": {"tokens": 4096}, "sequence": 4096, "global_batch": )";
const std::string kSmallVision =
    R"("vision": {"layers": 4, "hidden": 64, "heads": 8, "ffn": 128, "patch": 4, "image_size": 16},
       "projector": {"from": "vision", "merge": "2x2"},)";
const std::string kSmallSound =
    R"("audio": {"layers": 3, "hidden": 32, "heads": 4, "ffn": 64, "mel_bins": 8, "audio_tokens": 8},
       "audio_projector": {"kind": "projector", "from": "audio", "merge": 2, "hidden": 0},)";
const std::string kSmallBlocks =
    R"("layers": 8, "hidden": 96, "heads": 8, "kv_heads": 4, "head_dim": 12, "vocab": 512)";
const std::string kSmallNodes =
    R"("node": {"device": "H100", "ranks": 4, "link": "100GBps"}, "nodes": 2, "nic": "100Gbps")";

}  // namespace

std::vector<Question> screen_questions() {
  const std::string pictures =
      R"("images": {"per_sample": 2}, "text": {"tokens": 64}, "sequence": 128, "global_batch": )";
  const std::string any =
      R"j("images": {"per_sample": "uniform(0,3)"}, "text": {"tokens": "uniform(8,100)"}, "sequence": 512, "global_batch": )j";
  std::vector<Question> all{
      shipped("tiny", 4),           shipped("tiny_all", 5),   shipped("tiny_frozen", 4),
      shipped("tiny_text_only", 4), shipped("rehearse_8", 8),
  };
  const auto add = [&](const std::string& name, const std::string& model,
                       const std::string& cluster, const std::string& data,
                       const std::string& precision, bool small) {
    all.push_back(ask(name, model, cluster, data, precision, small));
  };
  const std::string small_language =
      R"("language": {"from": "projector", "ffn": 256, )" + kSmallBlocks + "}";
  add("small", kSmallVision + small_language, kSmallNodes, pictures + "32", "bf16", true);
  add("small, samples differ", kSmallVision + small_language, kSmallNodes, any + "32", "bf16",
      true);
  add("small, encoder frozen",
      R"("vision": {"layers": 4, "hidden": 64, "heads": 8, "ffn": 128, "patch": 4, "image_size": 16, "train": "frozen"},
         "projector": {"from": "vision", "merge": "2x2"},)" +
          small_language,
      kSmallNodes, pictures + "32", "fp32", true);
  add("small experts",
      kSmallVision +
          R"("language": {"from": "projector", "experts": 8, "experts_per_token": 2, "expert_ffn": 64, )" +
          kSmallBlocks + "}",
      kSmallNodes, pictures + "32", "bf16", true);
  add("small, two encoders",
      kSmallVision + kSmallSound +
          R"("language": {"from": ["projector", "audio_projector"], "ffn": 256, )" + kSmallBlocks +
          "}",
      kSmallNodes,
      R"("images": {"per_sample": 1}, "audio": {"per_sample": 1}, "text": {"tokens": 64}, "sequence": 128, "global_batch": 32)",
      "bf16", true);
  add("small, diffusion",
      kSmallVision + R"("language": {"from": "projector", "ffn": 256, )" + kSmallBlocks +
          R"(}, "diffusion": {"from": "language", "layers": 4, "hidden": 64, "heads": 8, "ffn": 128, "patch": 2, "latent_channels": 4, "latent_tokens": 16})",
      kSmallNodes,
      R"("images": {"per_sample": 1}, "latents": {"per_sample": 1}, "text": {"tokens": 64}, "sequence": 128, "global_batch": 32)",
      "bf16", true);
  add("small, vision measured",
      R"("vision": {"layers": 4, "hidden": 64, "heads": 8, "ffn": 128, "patch": 4, "image_size": 16,
           "layer_times": [{"layers": [1, 3], "tp": 2, "forward": {"per_token": "2us", "per_token_squared": "3ns"}, "backward_input": "1us", "backward_weight": "40us"},
                           {"layers": [0, 2], "forward": "1us", "backward_input": {"constant": "2us", "per_token": "1ns"}, "backward_weight": "30us"},
                           {"layers": "output", "forward": "5us", "backward_input": "0s", "backward_weight": "1us"}]},
         "projector": {"from": "vision", "merge": "2x2"},)" +
          small_language,
      kSmallNodes, any + "32", "bf16", true);
  add("small, times alone",
      R"("vision": {"layers": 4, "train": "frozen", "tokens": 16, "output": "128B", "kept": "900B", "parameters": "60kB",
           "layer_times": [{"layers": [1, 3], "forward": {"per_token": "2us", "per_token_squared": "3ns"}, "backward_input": "1us", "backward_weight": "40us"},
                           {"forward": "1us", "backward_input": {"constant": "2us", "per_token": "1ns"}, "backward_weight": "30us"}]},
         "projector": {"from": "vision", "merge": "2x2"},
         "language": {"from": "projector", "layers": 7, "output": "192B", "kept": "2kB", "parameters": "200kB",
           "layer_times": [{"stage": [2, 5], "forward": "30us", "backward_input": "40us", "backward_weight": "20us"},
                           {"forward": {"constant": "3us", "per_token": "1us"}, "backward_input": "20us", "backward_weight": "10us"}]})",
      kSmallNodes, any + "32", "bf16", true);
  add("small, times alone, all trained, free links",
      R"("vision": {"layers": 3, "kept": "900B", "layer_times": {"forward": "9us", "backward_input": "11us", "backward_weight": "10us"}},
         "audio": {"layers": 2, "tokens": 8, "parameters": "1MB", "layer_times": {"forward": "9us", "backward_input": "11us", "backward_weight": "10us"}},
         "language": {"from": ["vision", "audio"], "layers": 5, "kept": "2kB", "parameters": "200kB",
           "layer_times": [{"layers": [0, 1], "forward": "30us", "backward_input": "40us", "backward_weight": "20us"},
                           {"forward": "20us", "backward_input": "20us", "backward_weight": "10us"}]})",
      kSmallNodes + R"(, "free_links": true)",
      R"("images": {"per_sample": 1}, "audio": {"per_sample": 1}, "text": {"tokens": 64}, "global_batch": 32)",
      "fp32", true);
  const std::string h100 = R"("node": "hgx-h100", "nic": "400Gbps", "nodes": )";
  const std::string a100 = R"("node": "hgx-a100-80", "nic": "200Gbps", "nodes": )";
  add("llama-3.1-8b, 64 H100", R"("language": {"preset": "llama-3.1-8b"})", h100 + "8",
      kWords + "256", "bf16", false);
  add("llama-3.1-70b, 512 H100", R"("language": {"preset": "llama-3.1-70b"})", h100 + "64",
      kWords + "1024", "bf16", false);
  add("mixtral-8x7b, 64 H100", R"("language": {"preset": "mixtral-8x7b"})", h100 + "8",
      kWords + "512", "bf16", false);
  add("qwen3-30b-a3b, 128 B200", R"("language": {"preset": "qwen3-30b-a3b"})",
      R"("node": "hgx-b200", "nic": "400Gbps", "nodes": 16)", kWords + "512", "bf16", false);
  add("deepseek-v2-lite, 64 A100", R"("language": {"preset": "deepseek-v2-lite"})", a100 + "8",
      kWords + "256", "bf16", false);
  add("gemma-3-12b, 32 A100", R"("language": {"preset": "gemma-3-12b"})", a100 + "4",
      kWords + "128", "bf16", false);
  add("llama-3.1-8b by LoRA, 8 A100",
      R"("language": {"preset": "llama-3.1-8b", "train": "lora", "lora_rank": 16, "lora_alpha": 32})",
      a100 + "1", kWords + "64", "bf16", false);
  add("internvit-6b + qwen2.5-32b, 64 H100",
      R"("vision": {"preset": "internvit-6b"}, "projector": {"from": "vision", "merge": "2x2"},
         "language": {"from": "projector", "preset": "qwen2.5-32b"})",
      h100 + "8",
      R"("images": {"per_sample": 4}, "text": {"tokens": 3072}, "sequence": 4096, "global_batch": 256)",
      "bf16", false);
  add("12b + 70b, 512 H100",
      R"("vision": {"layers": 38, "hidden": 5120, "heads": 40, "ffn": 20480, "patch": 14, "image_size": 448},
         "projector": {"from": "vision", "merge": "2x2"}, "language": {"from": "projector", "preset": "llama-3.1-70b"})",
      h100 + "64",
      R"("images": {"per_sample": 8}, "text": {"tokens": 6144}, "sequence": 8192, "global_batch": 1024)",
      "bf16", false);
  // Other software stacks have different sizes, overlaps and messages.
  const std::vector<std::pair<std::string, std::string>> others{
      {"small experts", "megatron-core"},
      {"small", "fsdp"},
      {"llama-3.1-8b, 64 H100", "megatron-2022"},
      {"llama-3.1-70b, 512 H100", "megatron-core"},
      {"mixtral-8x7b, 64 H100", "megatron-bridge"},
      {"internvit-6b + qwen2.5-32b, 64 H100", "fsdp2-compiled"}};
  for (const auto& [name, stack] : others)
    for (std::size_t i = 0, count = all.size(); i < count; ++i)
      if (all[i].name == name) {
        Question other = all[i];
        other.name += ", " + stack;
        other.stack = stack;
        all.push_back(std::move(other));
      }
  return all;
}

}  // namespace polyphony::tests
