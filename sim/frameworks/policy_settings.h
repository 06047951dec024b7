// verl and NeMo-RL: which of a run's settings are of the trainer that updates the policy, and under
// which names that trainer has them.
//   verl     actor_rollout_ref.actor.megatron.tensor_model_parallel_size, and engine.… of its
//            fine-tuning: tensor_model_parallel_size
//   NeMo-RL  policy.megatron_cfg.tensor_model_parallel_size: tensor_model_parallel_size
// Settings of PyTorch's FSDP get the prefix "fsdp.". Sources: verl b178a3cd, verl/trainer/config;
// NeMo-RL 7ea279ab, examples/configs.
#pragma once

#include "sim/frameworks/settings.h"

namespace polyphony::sim {

// Renames them. Resolves references to other settings ("${policy.model_name}"), adds what follows
// from several ("seq_length": a prompt and a response) and "policy_engine" (megatron or fsdp), and
// moves the number of machines to `launch`. Settings of rollouts, rewards and reference models keep
// their names.
void name_policy_settings(FrameworkSettings& read);

// Returns whether a configuration inherits others as NeMo-RL's do: "defaults: ../sft.yaml".
bool inherits_files(const nlohmann::ordered_json& root);
// Removes from a NeMo-RL configuration the file or files whose settings it inherits. Returns their
// paths as written, in the order in which they apply.
std::vector<std::string> take_defaults(nlohmann::ordered_json& root);

}  // namespace polyphony::sim
