// Readers of other frameworks' settings, as in tests/fuzz/fuzz_test.cpp.
#include "sim/frameworks/import.h"
#include "sim/question/file_cluster.h"
#include "sim/question/question.h"
#include "tests/fuzz/fuzz.h"
#include "tests/shared/support/scenario_files.h"

#include <nlohmann/json.hpp>

namespace polyphony::sim {
namespace {

std::string no_file(const std::string& path) {
  throw InputError(path, "", "cannot be read", "check the path");
}

void check_file(const std::string& name, const std::string& gpus, std::vector<std::string> models) {
  const std::string whole = test::file_text("tests/system/imported/" + name);
  ImportOptions options;
  options.gpus = parse_gpus(gpus);
  options.models = std::move(models);
  fuzz::check_reader([&](std::uint64_t seed) { return test::mutated_lines(seed, whole, " "); },
                     [&](const std::string& text) {
                       import_settings(read_settings({{name, text}}, no_file), options, no_file,
                                       "");
                     });
}

}  // namespace

TEST_CASE("fuzz: launch scripts of Megatron-LM") {
  check_file("gpt_defaults.sh", "4x8xH100", {});
  check_file("deepseek_v3.sh", "64x8xH100", {"deepseek-v3"});
}
TEST_CASE("fuzz: arguments that Megatron-LM printed") {
  check_file("llama_8b_run.log", "2x8xH100", {});
}
TEST_CASE("fuzz: Megatron-Bridge's configuration") {
  check_file("qwen3_30b_run_config.yaml", "2x8xH100", {"qwen3-30b-a3b"});
}
TEST_CASE("fuzz: ms-swift's arguments") {
  check_file("qwen3_moe_swift.yaml", "2x8xH100", {"qwen3-30b-a3b"});
}
TEST_CASE("fuzz: torchtitan's TOML and JSON") {
  check_file("llama3_8b_titan.toml", "8xH100", {"llama-3.1-8b"});
  check_file("llama3_8b_titan.json", "8xH100", {"llama-3.1-8b"});
}
TEST_CASE("fuzz: LLaMA-Factory's YAML, DeepSpeed's JSON, Accelerate's YAML") {
  check_file("qwen_lora_factory.yaml", "8xH100", {"qwen2.5-7b"});
  check_file("zero3.json", "8xH100", {"qwen2.5-7b"});
  check_file("fsdp2.yaml", "8xH100", {"qwen2.5-7b"});
  check_file("qwen3_moe_factory_mca.yaml", "8xH100", {"qwen3-30b-a3b"});
}
TEST_CASE("fuzz: scripts of verl, configurations of NeMo-RL") {
  check_file("qwen3_30b_verl.sh", "2x8xH100", {"qwen3-30b-a3b"});
  check_file("qwen_7b_verl_sft.sh", "8xH100", {"qwen2.5-7b"});
  check_file("llama_8b_nemo_rl.yaml", "2x8xH100", {"llama-3.1-8b"});
  check_file("nemo_rl_base.yaml", "2x8xH100", {"llama-3.1-8b"});
}

// Files about machines: whatever is read must also become a cluster.
TEST_CASE("fuzz: topologies of NCCL and Slurm, nccl-tests") {
  using Case = std::pair<const char*, const char*>;
  for (const auto& [name, asked] :
       {Case{"hgx_h100_topo.xml", "4x8xH100"}, Case{"a40_pairs_topo.xml", "4x4xA40"},
        Case{"topology.conf", "64x8xH100"}, Case{"blocks.conf", "36x4xGB200"},
        Case{"topology.yaml", "64x8xH100"}, Case{"all_reduce.json", ""}}) {
    CAPTURE(std::string(name));
    const std::string whole = test::file_text("tests/system/machines/" + std::string(name));
    fuzz::check_reader(
        [&](std::uint64_t seed) { return test::mutated_lines(seed, whole, " "); },
        [&](const std::string& text) {
          const MachineFacts facts =
              read_machine_files({name}, [&](const std::string&) { return text; });
          const GpuRequest gpus = gpus_of(facts, asked, "--gpus");
          nlohmann::ordered_json cluster = cluster_json(gpus, "", "", "");
          std::vector<std::string> assumed;
          add_machine_facts(facts, gpus, facts.leaf_nodes.value ? 2 : 0, cluster, assumed);
          read_scenario(
              nlohmann::ordered_json{{"polyphony", 1},
                                     {"model", {{"language", {{"preset", "llama-3.1-8b"}}}}},
                                     {"cluster", cluster},
                                     {"data", {{"text", {{"tokens", 4096}}}, {"global_batch", 64}}}}
                  .dump(),
              "q.json", no_file, {});
        });
  }
}

}  // namespace polyphony::sim
