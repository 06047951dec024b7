// Settings of a training framework, read from the files that people have: launch scripts, the
// arguments that a run printed, saved configurations (YAML, JSON, TOML).
//   Every file becomes a list of settings. A setting's key is the framework's own name for it: the
//   destination of a command-line option ("tensor_model_parallel_size"), or the path in a
//   configuration ("parallelism.tensor_parallel_degree"). Of verl and NeMo-RL it is that of the
//   trainer beneath (policy_settings.h). What they mean: sim/frameworks/import.h.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/enum_names.h"
#include "shared/scenario_io/scenario_json.h"

namespace polyphony::sim {

using polyphony::name;  // of the enum below

enum class Framework : std::uint8_t {
  megatron_lm,
  megatron_bridge,
  ms_swift,
  llama_factory,
  torchtitan,
  hf_trainer,  // transformers' Trainer, alone or with DeepSpeed or Accelerate
  verl,
  nemo_rl
};
constexpr auto names(Framework) {
  return names_of<Framework>("megatron-lm", "megatron-bridge", "ms-swift", "llama-factory",
                             "torchtitan", "hf-trainer", "verl", "nemo-rl");
}

struct Setting {
  std::string key;
  std::string value;    // "true" and "false" for switches, "none" for null; lists: "a b c"
  std::string written;  // as in the file: "--tensor-model-parallel-size 8"; empty: of no file
  std::string place;    // "train.sh:12", "run.yaml: /model/tp"
};

struct NamedText {
  std::string path, text;
};

struct FrameworkSettings {
  Framework framework = Framework::megatron_lm;
  std::vector<Setting> settings;  // in the order of the files; of a key, the last one counts
  std::map<std::string, std::string> launch;  // "nodes", "per_node" and where they stand
  bool printed = false;  // the arguments that a run printed: all of them, most at their defaults
  std::vector<std::string> notes;     // what was assumed while reading
  std::vector<std::string> missing;   // files that are named and cannot be read
  std::vector<std::string> unused;    // files that are given and that no other names
  std::optional<NamedText> schedule;  // actions of the pipeline's ranks, as PyTorch's CSV
};

// Reads `files`, which belong to one run. Files that they name are read with `load` if they can be;
// a CSV of actions is read only where another file names it.
// Throws InputError if no framework's settings are found, or if two frameworks' are.
// `environment`: variables of the shell.
FrameworkSettings read_settings(const std::vector<NamedText>& files, const LoadText& load,
                                std::optional<Framework> stated = {},
                                const std::map<std::string, std::string>& environment = {});

}  // namespace polyphony::sim
