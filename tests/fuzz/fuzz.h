// Checks that a reader of files returns a value, or throws an InputError with one line that states
// the problem and the remedy, for any input and quickly.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "shared/error.h"
#include "tests/shared/support/mutate.h"

namespace polyphony::fuzz {

// Number of mutations from POLYPHONY_FUZZ, which `scripts/fuzz` sets.
inline std::uint64_t rounds() {
  const char* said = std::getenv("POLYPHONY_FUZZ");
  return said ? std::strtoull(said, nullptr, 10) : 1000;
}

// `make` creates a mutation from a seed, `read` reads it. Both outcomes must occur in at least a
// thousandth of the cases, otherwise the mutations test nothing.
template <class Make, class Read>
void check_reader(const Make& make, const Read& read) {
  std::uint64_t accepted = 0, refused = 0;
  double slowest = 0;
  for (std::uint64_t seed = 0; seed < rounds(); ++seed) {
    const std::string text = make(seed);
    const auto start = std::chrono::steady_clock::now();
    try {
      read(text);
      ++accepted;
    } catch (const InputError& error) {
      ++refused;
      const std::string line = error.what();
      if (error.what_is_wrong.size() < 4 || error.hint.size() < 4 ||
          line.find('\n') != std::string::npos)
        FAIL_CHECK("seed " << seed << ": no good line: " << line);
    } catch (const std::exception& error) {
      FAIL_CHECK("seed " << seed << ": not an InputError: " << error.what() << "\n" << text);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (took.count() > slowest) slowest = took.count();
  }
  MESSAGE(accepted << " read, " << refused << " refused, slowest " << slowest << " s");
  CHECK(accepted > rounds() / 1000);
  CHECK(refused > rounds() / 1000);
  CHECK(slowest < 5);  // detects a reader that does not terminate; not a benchmark
}

}  // namespace polyphony::fuzz
