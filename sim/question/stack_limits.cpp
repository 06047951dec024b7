#include "sim/question/stack_limits.h"

#include <nlohmann/json.hpp>

namespace polyphony::sim {
namespace {

const std::vector<StackLimits>& all_limits() {
  static const std::vector<const char*> one_grid{"homogeneous"}, plain{"1f1b"},
      virtual_stages{"1f1b", "interleaved"}, zero_1{"none", "optimizer"},
      zero_3{"optimizer", "gradients", "full"}, sharded{"full"};
  static const std::vector<StackLimits> all{
      {"megatron-2021",
       one_grid,
       virtual_stages,
       {"none"},
       true,
       false,
       true,
       "arXiv 2104.04473: tensor and pipeline parallelism, interleaved 1F1B"},
      {"megatron-2022", one_grid, virtual_stages, zero_1, true, false, true,
       "arXiv 2205.05198; the distributed optimizer of Megatron-LM 3.0"},
      {"megatron-deepspeed", one_grid, plain, zero_1, true, false, true,
       "DeepSpeed's PipelineModule: 1F1B, ZeRO-1 with pipelines"},
      {"megatron-core", one_grid, virtual_stages, zero_1, true, true, true,
       "megatron/core/model_parallel_config.py, distributed_data_parallel_config.py"},
      {"megatron-bridge", one_grid, virtual_stages, zero_1, true, true, true,
       "Megatron-Bridge's recipes: the modules share a grid"},
      {"megatron-mimo",
       {"homogeneous", "colocated", "non-colocated"},
       virtual_stages,
       zero_1,
       true,
       true,
       true,
       "megatron/core/models/mimo: a grid for each module"},
      {"fsdp", one_grid, plain, sharded, false, false, false, "llm-foundry: FSDP alone"},
      {"fsdp2",
       one_grid,
       {"1f1b", "interleaved", "interleaved-zb", "zb-v", "gpipe"},
       sharded,
       true,
       true,
       true,
       "torchtitan's ParallelDims and torch.distributed.pipelining"},
      {"fsdp2-compiled",
       one_grid,
       {"1f1b", "interleaved", "interleaved-zb", "zb-v", "gpipe"},
       sharded,
       true,
       true,
       true,
       "torchtitan's ParallelDims and torch.distributed.pipelining"},
      {"hf-eager", one_grid, plain, zero_3, false, false, false,
       "transformers' Trainer with FSDP or DeepSpeed ZeRO"},
      {"cornstarch",
       {"homogeneous", "non-colocated"},
       plain,
       {"none", "optimizer"},
       true,
       true,
       true,
       "cornstarch/plugin/multimodal_parallel_plugin.py"}};
  return all;
}

}  // namespace

const StackLimits* find_limits(const std::string& stack) {
  for (const StackLimits& limits : all_limits())
    if (stack == limits.stack) return &limits;
  return nullptr;
}

void apply_limits(const StackLimits& limits, const std::vector<std::string>& modules,
                  nlohmann::ordered_json& search) {
  search["placement"] = limits.placements;
  search["schedule"] = limits.schedules;
  for (const std::string& module : modules) {
    nlohmann::ordered_json& own = search[module];
    if (!limits.tensor_parallel) own["tp"] = 1;
    if (!limits.context_parallel) own["cp"] = 1;
    if (!limits.pipelines) own["pp"] = 1;
    own["shard"] = limits.shards;
    // Megatron Core and PyTorch give each context-parallel rank two runs of tokens.
    if (limits.context_parallel && module == "language") own["tokens"] = "zigzag";
  }
}

}  // namespace polyphony::sim
