#include "tests/sim/runner/bench_scenario.h"

#include <nlohmann/json.hpp>

#include "shared/scenario/scenario_json.h"

namespace polyphony::tests {

Scenario bench_scenario(const BenchShape& shape) {
  constexpr int kBlocksPerStage = 5, kRanksPerNode = 8;
  const nlohmann::json scenario = {
      {"polyphony", 1},
      {"about",
       "A step for measuring the simulator's speed, not the model's: blocks as wide as those of "
       "Llama-3.1-70B, 6 * 0.86e9 FLOPs a token and block. Source: its config.json."},
      {"model",
       {{"language",
         {{"layers", kBlocksPerStage * shape.stages},
          {"hidden", 8192},
          {"heads", 64},
          {"kv_heads", 8},
          {"ffn", 28672},
          {"vocab", 128256}}}}},
      {"cluster",
       {{"node", "hgx-h100"}, {"nodes", shape.ranks() / kRanksPerNode}, {"nic", "400Gbps"}}},
      {"data",
       {{"source", "synthetic"},
        {"text",
         {{"tokens", shape.varied ? nlohmann::json("uniform(1024,8192)") : nlohmann::json(8192)}}},
        {"sequence", 8192},
        {"global_batch", shape.microbatches * shape.replicas}}},
      {"layout",
       {{"placement", "homogeneous"},
        {"schedule", "1f1b"},
        {"microbatches", shape.microbatches},
        {"all", {{"pp", shape.stages}, {"tp", shape.tensor}, {"shard", shape.shard}}}}},
      {"training", {{"precision", "bf16"}}}};
  return read_scenario(scenario.dump(), "bench_scenario", [](const std::string&) {
    return std::string();  // it names no other file
  });
}

}  // namespace polyphony::tests
