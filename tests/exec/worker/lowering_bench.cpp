// Not a test: planning times printed by scripts/bench_executor, on worlds of 8 to 8,192 ranks that
// differ only in data parallelism, with four samples per replica:
//   exec_test --test-case="lowering bench" --no-skip
#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "shared/check/check.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/step/step_part.h"
#include "tests/shared/support/example_models.h"

namespace polyphony::exec::testing {
namespace {

double now() { return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// A quarter of the ranks run the encoder, the others three pipeline stages with a sharded
// optimizer.
Layout layout_of(int ranks) {
  ModuleLayout encoder, language;
  encoder.ranks = ranks / 4;
  language.first_rank = ranks / 4;
  language.ranks = ranks - ranks / 4;
  language.pp = 3;
  language.shard = Shard::optimizer;
  return {.placement = Placement::non_colocated,
          .modules = {encoder, encoder, language},
          .microbatches = 4};
}

}  // namespace

// On a rank: from the bytes that it receives to its Program, which it keeps. On rank 0: the plan,
// and all parts as bytes.
TEST_CASE("lowering bench" * doctest::skip()) {
  constexpr int kTries = 9;
  for (const int ranks : {8, 64, 1024, 8192}) {
    const Scenario scenario = examples::small_on_cpu(ranks, ranks);
    const Layout layout = layout_of(ranks);
    REQUIRE_FALSE(check_layout(scenario, layout).has_value());
    const Plan plan = make_plan(scenario, layout);
    const Batch batch = typical_batch(scenario);
    const double began = now();
    const StepPlan step = make_step_plan(scenario, layout, plan, batch);
    const StepParts parts(scenario.model, plan, step, batch);
    std::vector<std::string> bytes;
    for (int r = 0; r < ranks; ++r)
      bytes.push_back(to_bytes(parts.of(Rank(static_cast<std::size_t>(r)))));
    const double planned = now() - began;
    double slowest = 0, largest = 0, longest = 0;
    for (const int rank : {0, ranks / 4, ranks / 2, ranks - 1}) {
      std::vector<double> times;
      for (int i = 0; i < kTries; ++i) {
        const std::size_t before = mallinfo2().uordblks;
        const double start = now();
        const StepPart part = read_step_part(bytes[static_cast<std::size_t>(rank)]);
        const Program program = lower(scenario, layout, plan, part.step, part.batch);
        times.push_back(now() - start);
        largest = std::max(largest, static_cast<double>(mallinfo2().uordblks - before));
      }
      std::nth_element(times.begin(), times.begin() + kTries / 2, times.end());
      slowest = std::max(slowest, times[kTries / 2]);
      longest =
          std::max(longest, static_cast<double>(bytes[static_cast<std::size_t>(rank)].size()));
    }
    std::printf(
        "lowering %d ranks: of one %.1f us, %.0f bytes held, %.0f bytes sent; plan %.6f s\n", ranks,
        slowest * 1e6, largest, longest, planned);
  }
}

}  // namespace polyphony::exec::testing
