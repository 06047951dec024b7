// Writes what a run has trained as published models, which other programs load: safetensors files
// under the tensor names of the model's family, config.json, and a LoRA adapter as PEFT has it.
//
//   One module, or all modules of one composite model (vision, projector and language of a
//   Qwen2-VL): the folder is that model. Otherwise each module has a folder of its name in it. A
//   projector that began at random has LLaVA's names.
//   A module trained by LoRA gives adapter_config.json and adapter_model.safetensors in a folder of
//   its own, or, merged, whole weights. Parts of composite models must be merged: PEFT looks for
//   layers under the names of the whole model's modules, which files do not have.
//   With ExportOptions::llava, modules of several folders become one LLaVA.
// Tokenizer and processor files beside the module's config.json are copied. If none of them
// has a chat template, chat_template.jinja is that of the conversations that the run trained on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shared/scenario/scenario.h"

namespace polyphony {

struct ExportOptions {
  std::string run;                   // folder of the run
  std::string out;                   // folder to write; must not exist, or be empty
  std::optional<std::int64_t> step;  // of the checkpoint; the newest when absent
  std::string format;                // "F32", "BF16", "F16", "F64"; empty: that of training
  bool merge = false;                // add low-rank pairs to the weights
  // Whether vision, projector and language modules of several folders become one LLaVA, and the
  // token of the tokenizer that stands for its images (shared/export/llava_json.h).
  bool llava = false;
  std::string image_token = "<image>";
  std::function<void(double share)> progress;  // may be empty
};

struct ExportedModel {
  std::string folder;
  std::vector<std::string> modules;
  bool adapter = false;
  std::int64_t tensors = 0, parameters = 0;
  std::vector<std::string> copied;  // names of files
};
struct Exported {
  std::int64_t step = 0;
  std::string format;
  std::vector<ExportedModel> models;
  std::vector<std::string> left_out;  // modules of no published model, and why
};

// `scenario`: that of the run's folder. The export appears at once under its name, or not at all.
// Throws InputError if there is no checkpoint, no module is of a published model, a module differs
// from its configuration, or the folder is in use.
Exported export_run(const Scenario& scenario, const ExportOptions& options);

}  // namespace polyphony
