// Lists the parameters of a module or of a range of its layers, and seeds their initial values.
// shared/kernels/parameter.h explains the entries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/kernels/parameter.h"

namespace polyphony {

// Returns the parameters of the layers in `range`, in stack order; deterministic.
std::vector<Parameter> parameters(const Module& module, LayerRange range);
std::vector<Parameter> parameters(const Module& module);
std::int64_t parameter_count(const Module& module);

// Returns the seed of a parameter's initial values: element i of the global tensor is
// random_normal(seed, i)·deviation (shared/random.h).
std::uint64_t parameter_seed(std::uint64_t seed, const std::string& name);
}  // namespace polyphony
