// Random changes of scenario texts, for tests that feed them to whatever reads scenarios.
#pragma once

#include <cstdint>
#include <string>

#include "tests/shared/support/scenario_files.h"

namespace polyphony::test {

// The seed decides all: a shipped scenario or its resolved form, changed in one to three values or
// a few characters, or cut off. `path` is set to the scenario it was made from.
std::string mutated_scenario(std::uint64_t seed, std::string& path);

}  // namespace polyphony::test
