// Which published model a module is, and whether its training begins with that model's weights.
#pragma once

#include <string>

namespace polyphony {

struct ModuleWeights {
  std::string folder;  // path, in Hugging Face layout; empty: the module begins at random
  std::string config;  // path of its config.json; empty: the module is of no published model
  std::string type;    // "model_type" of the configuration: which names its tensors have
                       // (shared/weights/tensor_families.h)
  bool operator==(const ModuleWeights&) const = default;
};

}  // namespace polyphony
