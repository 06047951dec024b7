// Parameters that a run takes over from another run: from its newest checkpoint (`run
// --weights-from`), or from the phase before (shared/scenario_io/phases.h).
//   Only values are taken over. Moments, the count of steps and the order of the data begin anew.
//   Parameters that the earlier run does not have must be low-rank pairs of LoRA: they begin as in
//   any new run. All others must be there, with equal shapes, and none may be left over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/checkpoint/checkpoint_manifest_json.h"
#include "shared/model/model.h"

namespace polyphony {

// Why a model cannot begin with the parameters of an earlier run.
struct CarryFault {
  std::string module;  // name
  std::string what;    // "language.norm.weight is 32 before, 64 after"
  std::string fix;
};
// Returns the first reason why `model` cannot begin with the parameters `saved`, if there is one.
std::optional<CarryFault> carry_fault(const std::vector<ModelParameter>& saved, const Model& model);

struct CarriedWeights {
  std::string checkpoints;  // folder of the earlier run's checkpoints
  std::int64_t step = 0;    // of the newest one
  Manifest manifest;
};
// Finds the newest checkpoint of the run in `folder`. Throws InputError if there is none, a file of
// it is missing, or `model` cannot begin with it.
CarriedWeights find_carried_weights(const std::string& folder, const Model& model);

}  // namespace polyphony
