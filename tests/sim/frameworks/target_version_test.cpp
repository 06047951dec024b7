// What emit() writes for older versions of a framework.
#include "sim/frameworks/target_version.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "shared/scenario_io/scenario_profile.h"
#include "sim/frameworks/emit.h"
#include "sim/frameworks/target_change.h"
#include "sim/load/load.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::sim {
namespace {

std::string no_file_at(const std::string& path) {
  throw InputError(path, "", "cannot be read", "check the path");
}

// Llama 3.1 8B on 64 H100s, with `layout` of all modules.
Scenario llama(const std::string& layout) {
  return read_scenario(
      R"({"polyphony": 1, "model": {"language": {"preset": "llama-3.1-8b"}},
      "cluster": {"node": "hgx-h100", "nodes": 8},
      "training": {"precision": "bf16"},
      "data": {"source": "synthetic", "text": {"tokens": 4096}, "sequence": 4096, "global_batch": 256}, "layout": )" +
          layout + "}",
      "q.json", no_file_at, {});
}

Emitted emitted(const std::string& layout, const std::string& target) {
  const Scenario scenario = llama(layout);
  return emit_planned(scenario, *scenario.layout, load_profile(scenario, {}), parse_target(target));
}

std::string text_of(const Emitted& emitted, const std::string& path) {
  for (const NamedText& file : emitted.files)
    if (file.path == path) return file.text;
  return "";
}

std::string refusals(const Emitted& emitted) {
  std::string all;
  for (const std::string& line : emitted.cannot) all += line + "\n";
  return all;
}

constexpr const char* kUneven =
    R"({"placement": "homogeneous", "microbatches": 16, "all": {"tp": 2, "sp": true, "pp": 4,
        "blocks": [7, 9, 9, 7], "shard": "optimizer"}})";

}  // namespace

TEST_CASE("versions: spellings, and what is refused") {
  CHECK(parse_target("Megatron_LM") == Target::megatron_lm);
  CHECK(target_text(parse_target("megatron-lm")) == "megatron-lm");
  for (const char* same : {"megatron-lm@0.13", "megatron-lm@v0.13.0", "Megatron-LM@core_v0.13.0",
                           "megatron_lm@core_r0.13.0"})
    CHECK(target_text(parse_target(same)) == "megatron-lm@0.13.0");
  for (const char* none :
       {"megatron-lm@", "megatron-lm@0", "megatron-lm@0.13.", "megatron-lm@0.13.0.",
        "megatron-lm@vr0.13", "megatron-lm@0.13rc1", "megatron-lm@main", "torchtitan@0.2.1.5",
        "torchtitan@0.-2", "torchtitan@0.99999999999"})
    CHECK_THROWS_WITH_AS(parse_target(none), doctest::Contains("has no version behind its @"),
                         InputError);
  CHECK_THROWS_WITH_AS(parse_target("torchtitan@0.1.0"),
                       doctest::Contains("it is older than 0.2.0"), InputError);
  CHECK_THROWS_WITH_AS(parse_target("torchtitn@0.2"), doctest::Contains("torchtitan"), InputError);
}

TEST_CASE("versions: rows name settings that emit() writes, within the known versions") {
  const std::string writers = test::file_text("sim/frameworks/emit_megatron.cpp") +
                              test::file_text("sim/frameworks/emit_torchtitan.cpp");
  for (const SettingSince& of : settings_since()) {
    CAPTURE(of.setting);
    const KnownVersions known = known_versions(of.target);
    CHECK(known.oldest < of.since);
    CHECK(of.since <= known.newest);
    if (of.value) CHECK(nlohmann::json::accept(of.value));
    CHECK(writers.find("\"" + std::string(of.setting) + "\"") != std::string::npos);
  }
}

TEST_CASE("versions: stages of different sizes in Megatron-LM") {
  const Emitted newest = emitted(kUneven, "megatron-lm"),
                old = emitted(kUneven, "megatron-lm@0.12");
  CHECK(newest.arguments.contains("pipeline_model_parallel_layout"));
  CHECK(refusals(old) == "");
  CHECK(!old.arguments.contains("pipeline_model_parallel_layout"));
  CHECK(old.arguments.at("decoder_first_pipeline_num_layers") == 7);
  CHECK(old.arguments.at("decoder_last_pipeline_num_layers") == 7);
  const std::string inner =
      R"({"placement": "homogeneous", "microbatches": 16, "all": {"tp": 2, "sp": true, "pp": 4,
          "blocks": [8, 9, 8, 7], "shard": "optimizer"}})";
  CHECK(refusals(emitted(inner, "megatron-lm@0.12")).find("the first and the last") !=
        std::string::npos);
  CHECK(refusals(emitted(inner, "megatron-lm@0.13")) == "");
  // Megatron-LM refuses a first or last stage of no block.
  const std::string empty =
      R"({"placement": "homogeneous", "microbatches": 16, "all": {"tp": 2, "sp": true, "pp": 4,
          "blocks": [0, 16, 16, 0], "shard": "optimizer"}})";
  CHECK(refusals(emitted(empty, "megatron-lm@0.12")).find("not zero") != std::string::npos);
  CHECK(refusals(emitted(empty, "megatron-lm@0.13")) == "");
}

TEST_CASE("versions: settings that older ones do without, or refuse") {
  const std::string selective =
      R"({"placement": "homogeneous", "microbatches": 4, "all": {"tp": 2, "sp": true,
          "recompute": "selective", "shard": "optimizer"}})";
  CHECK(emitted(selective, "megatron-lm").arguments.contains("recompute_modules"));
  const Emitted old = emitted(selective, "megatron-lm@0.11");
  CHECK(!old.arguments.contains("recompute_modules"));
  CHECK(old.arguments.at("recompute_granularity") == "selective");
  CHECK(text_of(old, "arguments.txt").find("recompute-modules") == std::string::npos);
  const std::string sharded =
      R"({"placement": "homogeneous", "microbatches": 1, "all": {"shard": "full"}})";
  CHECK(refusals(emitted(sharded, "megatron-lm@0.13.1")).find("from 0.14.0 on") !=
        std::string::npos);
  CHECK(refusals(emitted(sharded, "megatron-lm@0.14")) == "");
  const std::string ulysses =
      R"({"placement": "homogeneous", "microbatches": 4, "all": {"cp": 2, "tokens": "zigzag",
          "cp_attention": "ulysses", "shard": "optimizer"}})";
  CHECK(refusals(emitted(ulysses, "ms-swift@4.4.2")).find("from 4.5.0 on") != std::string::npos);
  CHECK(refusals(emitted(ulysses, "ms-swift@4.5")) == "");
}

TEST_CASE("versions: torchtitan before 0.3.0 is configured by TOML") {
  const std::string layout =
      R"({"placement": "homogeneous", "microbatches": 16, "schedule": "1f1b",
          "all": {"tp": 2, "sp": true, "pp": 4, "blocks": [7, 9, 9, 7], "shard": "full",
                  "recompute": "full"}})";
  const Emitted old = emitted(layout, "torchtitan@0.2.2");
  REQUIRE(refusals(old) == "");
  const std::string toml = text_of(old, "polyphony.toml");
  CAPTURE(toml);
  for (const char* line :
       {"[model]\nname = \"llama3\"\nflavor = \"8B\"\n", "\npipeline_parallel_degree = 4\n",
        "\"norm\",\"output\"]]", "[activation_checkpoint]\nmode = \"full\"\n"})
    CHECK(toml.find(line) != std::string::npos);
  for (const char* none : {"enable_sequence_parallel", "disable_cuda_graphs", "null", "lm_head"})
    CHECK(toml.find(none) == std::string::npos);
  CHECK(text_of(old, "polyphony_config.py") == "");
  CHECK(text_of(old, "run.sh").find("--job.config_file \"$HERE/polyphony.toml\"") !=
        std::string::npos);
  const std::string contiguous =
      R"({"placement": "homogeneous", "microbatches": 2, "all": {"cp": 2, "tokens": "contiguous",
          "shard": "full"}})";
  CHECK(refusals(emitted(contiguous, "torchtitan@0.2.0")).find("contiguous tokens") !=
        std::string::npos);
  CHECK(refusals(emitted(contiguous, "torchtitan")) == "");
}

TEST_CASE("versions: one newer than the newest that is known is said") {
  const Emitted newer = emitted(kUneven, "megatron-lm@0.25");
  REQUIRE(!newer.notes.empty());
  CHECK(newer.notes.front().find("is newer than 0.19.0") != std::string::npos);
}

}  // namespace polyphony::sim
