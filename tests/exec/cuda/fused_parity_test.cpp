// Whole steps with our kernels' bodies, on CPUs, are the reference's: what a kernel is given by the layers around it is
// right, in every layout (tests/exec/parity/parity.h).
#include <doctest/doctest.h>

#include "tests/exec/cuda/operation.h"
#include "tests/exec/parity/parity.h"

namespace polyphony::exec::testing {

TEST_SUITE("fused kernels") {
  TEST_CASE("every layout computes the reference's step with our kernels' bodies") {
    const FormsFor fused(kernels::Forms::fused);
    for (const Case& c : parity_cases()) {
      INFO(c.name);
      CHECK(complaint(c, run_in_process(c)) == "");
    }
  }
}

}  // namespace polyphony::exec::testing
