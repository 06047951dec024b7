// Random changes of texts, for tests of readers. Deterministic for a seed.
#pragma once

#include <cstdint>
#include <string>

#include "tests/shared/support/scenario_files.h"

namespace polyphony::test {

// Returns JSON with one to three values or a few characters changed, or truncated.
std::string mutated_json(std::uint64_t seed, const std::string& original);
// Returns the text with lines dropped, doubled or swapped, words between `separators` replaced by
// odd ones, characters changed, or truncated.
std::string mutated_lines(std::uint64_t seed, const std::string& original,
                          const std::string& separators);

// Returns a shipped scenario or its resolved form with one to three values or a few characters
// changed, or truncated. Sets `path` to the original scenario.
std::string mutated_scenario(std::uint64_t seed, std::string& path);

}  // namespace polyphony::test
