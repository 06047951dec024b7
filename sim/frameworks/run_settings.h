// What a training framework's settings say, in words that all frameworks share: the step between
// their files and a scenario, in both directions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/model/layout.h"
#include "shared/scenario/scenario.h"

namespace polyphony::sim {

struct RunSettings {
  std::string stack;  // software stack whose costs are the framework's

  // The model: dimensions of the language module as a scenario's keys, if the settings state them.
  std::optional<nlohmann::ordered_json> language;
  std::string model_name;  // as the framework names it: "Qwen/Qwen2.5-VL-7B-Instruct", "llama3 8B"
  std::string encoder;     // preset of the vision encoder beside a language module with dimensions
  std::string tokenizer;   // name of the model whose tokenizer is used
  // Modules that are not trained in full: {"vision", "frozen"}, {"language", "lora"}.
  std::vector<std::pair<std::string, std::string>> train;
  int lora_rank = 0;

  // The layout: one grid for all modules.
  ModuleLayout grid;
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  std::vector<std::string> actions;  // of each pipeline rank, as a scenario has them; empty: none
  // Blocks of the language module on each virtual stage; empty: as the framework divides them,
  // which is `even` or by cost.
  std::vector<int> blocks;
  bool even = true;
  // Blocks at the start of each pipeline stage that recompute (Megatron's method "block"); 0: all.
  int recomputed_per_stage = 0;
  // Copies of a sharded optimizer (Megatron-LM), or of sharded parameters (HSDP); 0: not stated.
  int shard_groups = 0;
  // Encoders repeat their work on every context-parallel rank.
  bool copied_images = true;

  // The batch: any two of samples in a microbatch, in a step, and microbatches.
  std::optional<std::int64_t> microbatch, global_batch, microbatches;
  // Samples are packed into microbatches of at most so many tokens, instead of `microbatch`.
  std::optional<std::int64_t> microbatch_tokens;
  std::optional<std::int64_t> sequence;
  // Ranks of the run; only data parallelism depends on them.
  std::optional<int> ranks, nodes, per_node;

  std::string precision;  // as in a scenario
  std::string fp8;
  nlohmann::ordered_json training = nlohmann::ordered_json::object();  // learning rate and so on
};

}  // namespace polyphony::sim
