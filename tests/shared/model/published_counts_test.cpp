// The parameters of published models, counted from their config.json and by transformers.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "shared/chunk/parameters.h"
#include "shared/scenario_io/scenario_json.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

// Largest relative difference. What a model here leaves out is named by a note: a position table
// beside rotary positions, norms inside projectors, a second frame of a patch.
constexpr double kClose = 0.005;
// Projectors that average 4x4 patches are here one matrix over all of them.
constexpr double kPooled = 0.011;

constexpr const char* kScenario = R"({"polyphony": 1, "model": {"hf": "config.json"},
  "cluster": {"node": "hgx-h100"}, "data": {"source": "synthetic", "text": {"tokens": 64},
  "images": {"per_sample": 1}, "sequence": 8192, "global_batch": 8}, "training": {"precision": "bf16"}})";

std::int64_t parameters_of(const std::string& config) {
  nlohmann::json scenario = nlohmann::json::parse(kScenario);
  nlohmann::json parts = nlohmann::json::parse(config);
  if (parts.contains("thinker_config")) parts = nlohmann::json(parts.at("thinker_config"));
  if (!parts.contains("vision_config")) scenario["data"].erase("images");
  if (parts.contains("audio_config")) scenario["data"]["audio"] = {{"per_sample", 1}};
  scenario["data"].erase("sequence");
  const Scenario read =
      read_scenario(scenario.dump(), "q.json", [&](const std::string&) { return config; }, {});
  std::int64_t sum = 0;
  for (const Module& module : read.model.modules) sum += parameter_count(module);
  return sum;
}

}  // namespace

TEST_CASE("published models have the parameters that transformers counts") {
  std::istringstream lines(test::file_text("tests/shared/model/published_models.jsonl"));
  int models = 0;
  for (std::string line; std::getline(lines, line); ++models) {
    const nlohmann::json model = nlohmann::json::parse(line);
    CAPTURE(model.at("name").get<std::string>());
    const auto published = model.at("parameters").get<double>();
    double read = 0;
    CHECK_NOTHROW(read = static_cast<double>(parameters_of(model.at("config").dump())));
    const bool pooled = model.at("config").at("model_type") == "gemma3";
    CHECK(std::abs(read / published - 1) <= (pooled ? kPooled : kClose));
  }
  CHECK(models >= 20);
}

}  // namespace polyphony
