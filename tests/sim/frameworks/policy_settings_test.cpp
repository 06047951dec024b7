// Settings of verl and NeMo-RL under the names of the trainer beneath.
#include "sim/frameworks/policy_settings.h"

#include <doctest/doctest.h>

#include <map>

#include "shared/error.h"
#include "sim/frameworks/import.h"

namespace polyphony::sim {
namespace {

using Files = std::map<std::string, std::string>;

FrameworkSettings read(const Files& files, const std::string& first) {
  return read_settings({{first, files.at(first)}}, [&](const std::string& path) {
    const auto found = files.find(path);
    if (found == files.end()) throw InputError(path, "", "cannot be read", "check the path");
    return found->second;
  });
}

// The last value of a key; "" if there is none.
std::string value(const FrameworkSettings& read, const std::string& key) {
  std::string last;
  for (const Setting& setting : read.settings)
    if (setting.key == key) last = setting.value;
  return last;
}

std::string verl(const std::string& words) {
  return "python3 -m verl.trainer.main_ppo " + words + "\n";
}

}  // namespace

TEST_CASE("verl: a step is a mini-batch of prompts times responses, a sequence both") {
  const FrameworkSettings megatron =
      read({{"a.sh",
             verl("actor_rollout_ref.actor.strategy=megatron data.max_prompt_length=100 "
                  "data.max_response_length=28 actor_rollout_ref.actor.ppo_mini_batch_size=4 "
                  "actor_rollout_ref.rollout.n=8 actor_rollout_ref.actor.ppo_micro_batch_size=16 "
                  "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 "
                  "actor_rollout_ref.actor.optim.betas=[0.9,0.95]")}},
           "a.sh");
  CHECK(megatron.framework == Framework::verl);
  CHECK(value(megatron, "policy_engine") == "megatron");
  CHECK(value(megatron, "tensor_model_parallel_size") == "2");
  CHECK(value(megatron, "seq_length") == "128");
  CHECK(value(megatron, "global_batch_size") == "32");
  CHECK(value(megatron, "microbatches") == "2");
  CHECK(value(megatron, "adam_beta2") == "0.95");
  // Defaults: 256 prompts, one response, 512 tokens of each.
  const FrameworkSettings fsdp =
      read({{"a.sh", verl("actor_rollout_ref.model.path=x "
                          "actor_rollout_ref.actor.use_dynamic_bsz=True "
                          "actor_rollout_ref.actor.ulysses_sequence_parallel_size=2")}},
           "a.sh");
  CHECK(value(fsdp, "policy_engine") == "fsdp");
  CHECK(value(fsdp, "seq_length") == "1024");
  CHECK(value(fsdp, "global_batch_size") == "256");
  CHECK(value(fsdp, "microbatch_tokens") == "32768");  // 16,384 for each of two ranks
  ImportReport report;
  const RunSettings run = run_settings(fsdp, report);
  CHECK(run.grid.cp == 2);
  CHECK(run.grid.cp_attention == ContextAttention::ulysses);
  CHECK(run.grid.recompute == Recompute::full);
  CHECK(report.unknown.empty());
}

TEST_CASE("NeMo-RL: inherited files, references, and machines that only generate") {
  const char* const base =
      "policy:\n  model_name: a/b\n  tokenizer: {name: \"${policy.model_name}\"}\n"
      "  max_total_sequence_length: 4096\n  train_micro_batch_size: 2\n"
      "  sequence_packing: {enabled: true, train_mb_tokens: \"${mul:${policy."
      "max_total_sequence_length}, ${policy.train_micro_batch_size}}\"}\n"
      "  dtensor_cfg: {enabled: true, tensor_parallel_size: 4}\n"
      "  megatron_cfg: {enabled: false, tensor_model_parallel_size: 8}\n"
      "cluster: {num_nodes: 4, gpus_per_node: 8}\n";
  const Files files{{"run/base.yaml", base},
                    {"run/a.yaml",
                     "defaults: base.yaml\npolicy:\n  max_total_sequence_length: 1024\n"
                     "  generation: {colocated: {enabled: false, resources: {num_nodes: 1}}}\n"},
                    {"run/one.yaml",
                     "defaults: [base.yaml]\ncluster: {num_nodes: 1}\npolicy:\n"
                     "  generation: {colocated: {enabled: false, resources: "
                     "{gpus_per_node: 2}}}\n"},
                    {"run/self.yaml", "defaults: self.yaml\npolicy: {model_name: a}\n"}};
  const FrameworkSettings several = read(files, "run/a.yaml");
  CHECK(several.framework == Framework::nemo_rl);
  CHECK(value(several, "seq_length") == "1024");
  CHECK(value(several, "microbatch_tokens") == "2048");
  CHECK(value(several, "policy.tokenizer.name") == "a/b");
  CHECK(value(several, "fsdp.tensor_parallel_size") == "4");
  CHECK(value(several, "tensor_model_parallel_size") == "");  // of the engine that is off
  CHECK(several.launch.at("nodes") == "3");
  CHECK(several.launch.at("per_node") == "8");
  const FrameworkSettings one = read(files, "run/one.yaml");
  CHECK(one.launch.at("nodes") == "1");
  CHECK(one.launch.at("per_node") == "6");
  CHECK(read(files, "run/self.yaml").missing == std::vector<std::string>{"self.yaml"});
  CHECK(read({{"c.yaml",
               "policy: {model_name: x, a: \"${policy.b}\", b: \"${policy.a}${policy.a}\"}\n"}},
             "c.yaml")
            .framework == Framework::nemo_rl);
}

TEST_CASE("NeMo-RL: recomputation counts only where activation_checkpointing is on") {
  const auto recompute = [](const char* on) {
    ImportReport report;
    return run_settings(
               read({{"a.yaml",
                      std::string("policy: {model_name: x, megatron_cfg: {enabled: true, "
                                  "recompute_granularity: full, activation_checkpointing: ") +
                          on + "}}\n"}},
                    "a.yaml"),
               report)
        .grid.recompute;
  };
  CHECK(recompute("true") == Recompute::full);
  CHECK(recompute("false") == Recompute::none);
}

}  // namespace polyphony::sim
