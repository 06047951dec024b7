// Whole layouts over exec/device/nccl.cpp and the double of NCCL: a step of the executor, compared
// with the reference as everywhere (tests/exec/parity/parity.h).
#include <doctest/doctest.h>

#include "exec/fused/forms.h"
#include "tests/exec/nccl/nccl_world.h"
#include "tests/exec/parity/parity.h"

namespace polyphony::exec::testing {

TEST_SUITE("nccl") {
  TEST_CASE("layouts compute the reference's step over NCCL") {
    kernels::use_forms(kernels::Forms::aten);  // nothing here runs a kernel that nvcc compiled
    int layouts = 0;
    for (const Case& c : sampled(9, parity_cases())) {
      const int ranks = world_size(c.layout);
      if (ranks < 2) continue;
      INFO(c.name);
      ++layouts;
      Outcome outcome;
      over_nccl(ranks, c.name.size() % 2 == 0, [&](Transport& transport, torch::Device device) {
        const Outcome mine = run_case(transport, c, device);
        if (transport.rank() == Rank(0)) outcome = mine;
      });
      CHECK(complaint(c, outcome) == "");
    }
    CHECK(layouts >= 8);
    kernels::use_forms(kernels::Forms::by_device);
  }
}

}  // namespace polyphony::exec::testing
