// Lists the parameters of a module or of a range of its layers, and seeds their initial values. What an
// entry means: shared/kernels/parameter.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/kernels/parameter.h"

namespace polyphony {

// In stack order; deterministic. Layers outside `range` are skipped.
std::vector<Parameter> parameters(const Module& module, LayerRange range);
std::vector<Parameter> parameters(const Module& module);
std::int64_t parameter_count(const Module& module);

// The seed of a parameter's values: element i of the global tensor is random_normal(seed,
// i)·deviation (shared/random.h).
std::uint64_t parameter_seed(std::uint64_t seed, const std::string& name);
}  // namespace polyphony
