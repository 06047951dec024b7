// The parts of validate(), and how they report errors: as InputError with the scenario's file and a
// JSON pointer.
#pragma once

#include <string>
#include <vector>

#include "shared/scenario/scenario.h"

namespace polyphony {

// Throws InputErrors about one scenario.
class Refusal {
 public:
  explicit Refusal(const Scenario& scenario) : file_(scenario.file) {}
  [[noreturn]] void operator()(const std::string& pointer, const std::string& what,
                               const std::string& hint) const {
    throw InputError(file_, pointer, what, hint);
  }

 private:
  std::string file_;
};

// Checks the model. All functions below throw InputError through `refuse`; `where` is the JSON
// pointer of the module. In validate_model.cpp.
void validate_model(const Refusal& refuse, const Model& model);
struct ModuleSize {
  const char* key;
  std::int64_t value, most;
};
// Checks that each value is from 1 to `most`.
void check_sizes(const Refusal& refuse, const std::string& where,
                 const std::vector<ModuleSize>& sizes);
// Checks the sizes of a transformer stack.
void check_stack(const Refusal& refuse, const Module& module, const std::string& where);
// Checks experts (any kind of module: only language modules may have them), and the sequence mixers
// and latent attention of a language module. In validate_blocks.cpp.
void check_experts(const Refusal& refuse, const Module& module, const std::string& where);
void check_mixers(const Refusal& refuse, const Module& module, const std::string& where);
// Check an encoder. In validate_encoders.cpp.
void check_vision(const Refusal& refuse, const Module& module, const std::string& where);
void check_audio(const Refusal& refuse, const Module& module, const std::string& where);
// Check a diffusion module, except for the sizes of its stack, and the layers that edges name. In
// validate_diffusion.cpp.
void check_diffusion(const Refusal& refuse, const Model& model, ModuleId module);
void check_edge_layers(const Refusal& refuse, const Model& model);

}  // namespace polyphony
