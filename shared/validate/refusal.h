// How the parts of validate() refuse: always in the scenario's file, at a JSON pointer.
#pragma once

#include <string>
#include <vector>

#include "shared/scenario/scenario.h"

namespace polyphony {

// Refusals of one scenario, by JSON pointer.
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

// The model's part of validate(), in validate_model.cpp.
void validate_model(const Refusal& refuse, const Model& model);
struct ModuleSize {
  const char* key;
  std::int64_t value, most;
};
// Every one from 1 to its most.
void check_sizes(const Refusal& refuse, const std::string& where,
                 const std::vector<ModuleSize>& sizes);
// Of a transformer stack.
void check_stack(const Refusal& refuse, const Module& module, const std::string& where);
// Of every kind of module: only language modules may have experts; of language modules: attention that
// is latent, or unlike from block to block (shared/validate/validate_blocks.cpp).
void check_experts(const Refusal& refuse, const Module& module, const std::string& where);
void check_mixers(const Refusal& refuse, const Module& module, const std::string& where);
// In validate_encoders.cpp.
void check_vision(const Refusal& refuse, const Module& module, const std::string& where);
void check_audio(const Refusal& refuse, const Module& module, const std::string& where);
// In validate_diffusion.cpp: a diffusion module beyond the sizes of its stack, and the layers that
// edges name.
void check_diffusion(const Refusal& refuse, const Model& model, ModuleId module);
void check_edge_layers(const Refusal& refuse, const Model& model);

}  // namespace polyphony
