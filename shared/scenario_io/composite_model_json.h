// The key "weights" of a scenario's "model": one folder of a published composite model (a LLaVA, a
// Qwen2-VL), whose parts become the modules "vision", "projector" and "language".
#pragma once

#include <string>

#include "shared/text/strict_json.h"

namespace polyphony {

// Returns the scenario with the parts of the model written out as modules, each with "weights":
// `folder`; what the scenario says of these modules stays, and null leaves a key out.
// `configuration`: the text of the folder's config.json, and `file` its path. A model without
// "vision_config" is a language module alone. Throws InputError if it has parts that are no
// modules yet (audio).
JsonValue with_composite_parts(const JsonValue& scenario, const std::string& folder,
                               const std::string& configuration, const std::string& file);

}  // namespace polyphony
