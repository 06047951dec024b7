// Settings of each framework in the words of RunSettings. One function for each family; what no
// function reads is sorted by the tables of known settings.
#pragma once

#include <vector>

#include "sim/frameworks/run_settings.h"
#include "sim/frameworks/setting_reader.h"
#include "sim/frameworks/settings.h"

namespace polyphony::sim {

// Reads a setting into the key `to` of a scenario's training: a number that is not negative, or a
// number of steps above 0; others are left out.
void read_training_number(SettingReader& settings, const char* key, const char* to,
                          RunSettings& run);
void read_training_steps(SettingReader& settings, const char* key, const char* to,
                         RunSettings& run);

// Returns a parallel degree: 1 where no setting states it, at most a million.
int parallel_degree(SettingReader& settings, const char* key, const char* what);
// The language module is trained by LoRA, of rank 8 where no setting states it.
void train_by_lora(std::optional<std::int64_t> rank, RunSettings& run);

// Megatron-LM, Megatron-Bridge, ms-swift: the names of megatron/training/arguments.py. Returns the
// settings under these names: "--no-rope-fusion" becomes rope_fusion = false, Megatron-Bridge's
// "model.tensor_model_parallel_size" loses its section.
std::vector<Setting> megatron_names(const FrameworkSettings& read);
// `layers`: of the language module, where no setting states them; 0: unknown.
RunSettings read_megatron(SettingReader& settings, Framework framework, int layers);
std::vector<std::vector<KnownSetting>> megatron_known(Framework framework);
// Learning rate, decay, Adam's numbers, steps, by Megatron's names.
void read_optimization(SettingReader& settings, RunSettings& run);

// torchtitan's JSON and TOML, and its options. `schedule`: the CSV of actions that they name.
RunSettings read_torchtitan(SettingReader& settings, int layers,
                            const std::optional<NamedText>& schedule);
std::vector<std::vector<KnownSetting>> torchtitan_known();

// transformers' Trainer with FSDP, DeepSpeed or Accelerate; LLaMA-Factory.
RunSettings read_trainer(SettingReader& settings, Framework framework);
std::vector<std::vector<KnownSetting>> trainer_known();
// LLaMA-Factory with mcore_adapter (USE_MCA=1), whose settings have Megatron's names beside the
// Trainer's. Returns them under Megatron's names; nothing where there is no Megatron.
std::optional<std::vector<Setting>> megatron_names_of_factory(const FrameworkSettings& read);

// verl and NeMo-RL, as name_policy_settings() has named them: the update of the policy.
RunSettings read_policy(SettingReader& settings, Framework framework, int layers);
std::vector<std::vector<KnownSetting>> policy_known();

}  // namespace polyphony::sim
