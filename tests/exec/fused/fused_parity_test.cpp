// Whole steps with our kernels' bodies, on CPUs, match the reference. This tests that the layers
// pass the right arguments to each kernel in every layout (tests/exec/parity/parity.h).
#include <doctest/doctest.h>

#include "tests/exec/fused/operation.h"
#include "tests/exec/parity/parity.h"

namespace polyphony::exec::testing {

TEST_SUITE("fused kernels") {
  TEST_CASE("every layout computes the reference's step with the bodies of our kernels") {
    const FormsFor fused(kernels::Forms::fused);
    for (const Case& c : parity_cases()) {
      INFO(c.name);
      CHECK(complaint(c, run_in_process(c)) == "");
    }
  }
}

}  // namespace polyphony::exec::testing
