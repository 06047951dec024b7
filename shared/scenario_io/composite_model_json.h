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

// The config.json of a model.
struct WholeConfiguration {
  std::string text, file;  // its content, and its path for messages
};

// Returns the scenario with the parts of the model written out as modules, each with "weights":
// `folder`; what the scenario says of these modules stays. A model without "vision_config" is a
// language module alone. Throws InputError if it has parts whose weights cannot be read (audio).
JsonValue with_composite_parts(const JsonValue& scenario, const std::string& folder,
                               const WholeConfiguration& configuration);

// Returns the scenario with the parts of the model written out as modules without weights: "vision"
// and "audio", each with a projector, and "language", with "hf": `path`.
JsonValue with_composite_shapes(const JsonValue& scenario, const std::string& path,
                                const WholeConfiguration& configuration);

}  // namespace polyphony
