// Readers of other frameworks' settings, as in tests/fuzz/fuzz_test.cpp.
#include "sim/frameworks/import.h"
#include "tests/fuzz/fuzz.h"
#include "tests/shared/support/scenario_files.h"

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
}

}  // namespace polyphony::sim
