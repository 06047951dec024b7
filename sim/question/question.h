// A question that is asked without a scenario file: models, accelerators, data. `polyphony ask`
// makes a scenario of it and searches that.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "shared/scenario_io/scenario_json.h"
#include "sim/machines/machine_files.h"
#include "sim/question/gpu_request.h"

namespace polyphony::sim {

struct AskOptions {
  // Each a config.json of Hugging Face, a folder with one, or the name of a preset. One composite
  // model, or one of each kind: vision, audio, language.
  std::vector<std::string> models;
  GpuRequest gpus;
  // Numbers of nodes to search one by one, the last of which `gpus` has; empty: that alone.
  std::vector<int> node_counts = {};
  std::optional<std::int64_t> sequence, global_batch;  // tokens, samples
  // Images of a sample, and how large they are: "8", "8x1024" (patches), "8x448px" (pixels).
  std::string images;
  std::optional<int> clips;  // of audio, in a sample
  int merge = 0;             // patches a side that the projector joins; 0: the model's
  // Modules that are trained, "projector,lora:language"; empty: all.
  std::string train;
  std::string precision, stack, price, nic;  // as in a scenario; empty: its defaults
  MachineFacts machines = {};                // what files say of the cluster
  double oversubscription = 0;               // of leaf switches in them; 0: not stated
  bool thorough = false;  // search all choices, not the usual ones (sim/question/usual_choices.h)
};

struct AskedScenario {
  std::string text;                  // JSON
  std::vector<std::string> assumed;  // what the question left open, one line each
};

// Returns the scenario of a question. Paths in it are relative to `folder`. Throws InputError that
// names the option that is wrong.
AskedScenario asked_scenario(const AskOptions& question, const LoadText& load,
                             const std::string& folder);

// Returns the value of a scenario's key "cluster". `nic` and `price`: as in a scenario; empty: left
// out. The path of a device file becomes relative to `folder`.
nlohmann::ordered_json cluster_json(const GpuRequest& gpus, const std::string& nic,
                                    const std::string& price, const std::string& folder);

// Reads numbers as people write them: "8192", "8k" (1,024 each), "4M" (of 1,000,000). Throws
// InputError that names the option.
std::int64_t parse_count(const std::string& text, const std::string& option);

}  // namespace polyphony::sim
