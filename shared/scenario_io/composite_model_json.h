// The key "weights" of a scenario's "model": one folder of a published composite model (a LLaVA, a
// Qwen2-VL), whose parts become the modules "vision", "projector" and "language".
#pragma once

#include <string>

#include "shared/text/strict_json.h"

namespace polyphony {

// The value of a module's key "weights" that means: it begins at random. Unlike null, it survives
// "extends", --set and phases, which merge objects.
inline constexpr const char* kNoWeights = "none";

// Returns the scenario, whose model is an object, without the modules' "weights": "none".
JsonValue without_absent_weights(const JsonValue& scenario);

// Returns the scenario with the parts of the model written out as modules, each with "weights":
// `folder`; what the scenario says of these modules stays.
// `configuration`: the text of the folder's config.json, and `file` its path. A model without
// "vision_config" is a language module alone. Throws InputError if it has parts that are no
// modules yet (audio).
JsonValue with_composite_parts(const JsonValue& scenario, const std::string& folder,
                               const std::string& configuration, const std::string& file);

}  // namespace polyphony
