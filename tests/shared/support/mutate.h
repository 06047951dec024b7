// Random changes of texts, for tests that feed them to whatever reads them. The seed decides all.
#pragma once

#include <cstdint>
#include <string>

#include "tests/shared/support/scenario_files.h"

namespace polyphony::test {

// JSON changed in one to three values, or in a few characters, or cut off.
std::string mutated_json(std::uint64_t seed, const std::string& original);
// Lines dropped, doubled, swapped; words between `separators` replaced by odd ones; characters; or
// cut off.
std::string mutated_lines(std::uint64_t seed, const std::string& original,
                          const std::string& separators);

// A shipped scenario or its resolved form, changed in one to three values or
// a few characters, or cut off. `path` is set to the scenario it was made from.
std::string mutated_scenario(std::uint64_t seed, std::string& path);

}  // namespace polyphony::test
