// Training on devices that run behind the host, as GPUs do: the reference's numbers, and how often the host waits.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/exec/parity/parity.h"

namespace polyphony::exec::testing {

TEST_SUITE("queued device") {
  TEST_CASE("layouts on devices that run behind the host compute the reference's step") {
    const std::vector<Case> cases = parity_cases();
    for (const Case& c : cases) {
      INFO(c.name);
      if (const char* only = std::getenv("QUEUED_ONLY"); only && c.name.find(only) == std::string::npos) continue;
      const Outcome outcome = run_queued(c);
      CHECK(complaint(c, outcome) == "");
      for (const QueuedCounts& counts : outcome.counts) {
        std::string text;
        for (const auto& [what, count] : counts.waits) text += " " + what + " " + std::to_string(count);
        MESSAGE(c.name << ": kernels " << counts.kernels << ", waits" << text);
      }
    }
  }
}

}  // namespace polyphony::exec::testing
