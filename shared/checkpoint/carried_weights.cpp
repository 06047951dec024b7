#include "shared/checkpoint/carried_weights.h"

#include <map>

#include "shared/checkpoint/checkpoint_reader.h"
#include "shared/error.h"
#include "shared/files/run_paths.h"
#include "shared/kernels/lora.h"

namespace polyphony {
namespace {

constexpr const char* kSameModules = "give both the same modules with the same sizes";

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : " × ") + std::to_string(size);
  return text;
}

// Returns the name of the module that a parameter belongs to: "language" of
// "language.norm.weight".
std::string module_of(const std::string& parameter) {
  return parameter.substr(0, parameter.find('.'));
}

}  // namespace

std::optional<CarryFault> carry_fault(const std::vector<ModelParameter>& saved,
                                      const Model& model) {
  std::map<std::string, std::vector<std::int64_t>> before;
  for (const ModelParameter& parameter : saved) before[parameter.name] = parameter.shape;
  for (const ModelParameter& parameter : model_parameters(model)) {
    const std::string& name = parameter.name;
    const auto found = before.find(name);
    if (found == before.end()) {
      if (is_low_rank(name)) continue;
      return CarryFault{module_of(name), "there is no " + name + " before", kSameModules};
    }
    if (found->second != parameter.shape)
      return CarryFault{module_of(name),
                        name + " is " + shape_text(found->second) + " before, " +
                            shape_text(parameter.shape) + " after",
                        is_low_rank(name) ? "give both the same \"lora_rank\"" : kSameModules};
    before.erase(found);
  }
  if (before.empty()) return {};
  const std::string& left = before.begin()->first;
  for (const auto& [name, shape] : before)
    if (is_low_rank(name))
      return CarryFault{module_of(name),
                        "the low-rank pairs of " + module_of(name) + " have no place in it",
                        "keep \"train\": \"lora\" for " + module_of(name) +
                            ", or write merged weights with `polyphony export RUN --hf FOLDER "
                            "--merge` and begin another scenario with them"};
  return CarryFault{module_of(left), "there is no " + left + " after", kSameModules};
}

CarriedWeights find_carried_weights(const std::string& folder, const Model& model) {
  CarriedWeights found{RunPaths{folder}.checkpoints(), 0, {}};
  const std::vector<std::int64_t> steps = steps_in(found.checkpoints);
  if (steps.empty())
    throw InputError(folder, "", "has no checkpoint of a run",
                     "name the folder of a run (of a phase: OUT/PHASE) that has saved one");
  found.step = steps.back();
  found.manifest = read_manifest(found.checkpoints, found.step);
  if (const auto fault = carry_fault(found.manifest.parameters, model))
    throw InputError(folder, "", "this run cannot begin with its parameters: " + fault->what,
                     fault->fix);
  return found;
}

}  // namespace polyphony
