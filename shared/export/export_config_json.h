// The JSON files beside exported weights: config.json of the published model, adapter_config.json
// of a LoRA adapter.
#pragma once

#include <string>
#include <vector>

#include "shared/model/model.h"

namespace polyphony {

// Returns PyTorch's name of a number format: "bfloat16" of "BF16".
const char* torch_name(const std::string& format);

// Returns the configuration of an export: `text`, or only its part that describes `part`, with the
// number format `format` ("F32", "BF16", "F16", "F64"). Other keys stay as they are.
std::string exported_config(const std::string& text, const std::string& file, ModuleKind part,
                            bool whole, const std::string& format);

// Returns the configuration of a projector that is no part of a published model: the keys of
// LLaVA's that are about its projector. A scenario can begin training with it.
std::string projector_config(const std::string& format);

// Returns whether a configuration is composite and has a part that describes `kind`.
bool has_part(const std::string& text, ModuleKind kind);

// Returns the adapter_config.json by which PEFT adds low-rank pairs to the linear layers `targets`
// ("q_proj", …) of the model in the folder `base`.
// Source of the keys: huggingface/peft, LoraConfig.
std::string adapter_config(const Module& module, const std::vector<std::string>& targets,
                           const std::string& base);

}  // namespace polyphony
