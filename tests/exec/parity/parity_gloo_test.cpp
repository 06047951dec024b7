#include <doctest/doctest.h>

#include "shared/model/layout.h"
#include "tests/exec/parity/parity.h"
#include "tests/exec/parity/parity_part.h"
#include "tests/exec/transport/rank_processes.h"

namespace polyphony::exec::testing {
namespace {

constexpr int kRanks = 8;

// The same processes run all cases, one after another.
void run_pool(Transport& transport) {
  for (const Case& c : gloo_cases()) {
    const int ranks = world_size(c.layout);
    if (static_cast<int>(transport.rank().value) < ranks) {
      TransportPart part(transport, ranks, c.name + "/");
      const Outcome outcome = run_case(part, c);
      if (transport.rank() == Rank(0)) {
        const std::string wrong = complaint(c, outcome);
        require(wrong.empty(), c.name + ": " + wrong);
      }
    }
    transport.barrier();
  }
}

const bool kRole = add_role("parity", run_pool);

}  // namespace

TEST_SUITE("parity") {
  TEST_CASE("layouts over processes and Gloo compute the step of the reference") {
    REQUIRE(kRole);
    for (const RankResult& result : run_rank_processes("parity", kRanks, Seconds(240))) {
      INFO(result.output);
      CHECK(result.exit_status == 0);
    }
  }
}

}  // namespace polyphony::exec::testing
