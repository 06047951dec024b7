// Makes the UpdateTerms of exec/parameters/held_parameters.h from host values.
#pragma once

#include "exec/parameters/held_parameters.h"

namespace polyphony::exec::testing {

inline UpdateTerms update_terms(double clip, std::int64_t count, bool skip = false) {
  return {torch::scalar_tensor(clip, torch::kFloat64),
          torch::scalar_tensor(static_cast<double>(count), torch::kFloat32),
          torch::scalar_tensor(skip ? 1.0 : 0.0, torch::kFloat32)};
}

}  // namespace polyphony::exec::testing
