// Profiles of `polyphony run --kineto` as measured steps.
#include "traces/evidence/step_file.h"

#include <doctest/doctest.h>

#include <cmath>

#include "shared/error.h"
#include "tests/traces/format/played_pipeline.h"
#include "tests/traces/kineto/made.h"
#include "traces/kineto/bytes.h"

using namespace polyphony;
using namespace polyphony::traces;

namespace {

struct Made {
  std::string device = "false", more{};  // on_device; further events
  std::size_t without = 0;               // last ops that are omitted
  double ahead = 0;                      // microseconds by which the rank's clock is ahead
};

// A profile of a rank, as Kineto would write it.
std::string profile(const traces::test::Ran& run, Rank rank, const Made& made = {}) {
  const Range own = run.program.ops_of(rank);
  std::vector<std::string> events;
  for (const OpTime& time : run.timeline.ops) {
    const std::size_t op = time.op.value;
    if (op < own.begin || op + made.without >= own.end) continue;
    events.push_back(traces::made::event(
        "user_annotation", describe(run.program, time.op), time.start.count() * 1e6 + made.ahead,
        (time.end - time.start).count() * 1e6, "\"op\": " + std::to_string(op - own.begin)));
  }
  if (!made.more.empty()) events.push_back(made.more);
  const std::string head =
      traces::made::head(static_cast<int>(rank.value), static_cast<int>(run.program.ranks)) +
      R"("polyphony": {"format": 1, "kind": "profiled", "step": 7, "ops": )" +
      std::to_string(own.size()) + R"(, "on_device": )" + made.device +
      R"(, "clock": {"offset_ns": )" + std::to_string(-std::llround(made.ahead * 1000)) +
      R"(, "error_ns": 1000}},)";
  return traces::made::file(events, head);
}

Trace read(const traces::test::Ran& run, const std::string& text) {
  return StepFiles(run.program).read(text, "p");
}

}  // namespace

// Times are rounded to nanoseconds; the clock of rank r is r seconds ahead of rank 0's.
TEST_CASE("the profiles of all ranks are the measured step") {
  const traces::test::Ran run;
  StepFiles files(run.program);
  std::vector<Trace> parts;
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < run.program.ranks; ++rank) {
    const std::string text =
        packed(profile(run, Rank(rank), {.ahead = 1e6 * static_cast<double>(rank)}));
    CHECK(read_step_file_head(text, "p").step == 7);
    CHECK(read_step_file_head(text, "p").profiled);
    parts.push_back(files.read(text, "p"));
    names.push_back("rank " + std::to_string(rank));
    CHECK(parts.back().info.rank == Rank(rank));
    CHECK(parts.back().info.clock->error.count() == doctest::Approx(1e-6));
  }
  const Timeline whole = merge(run.program, parts, names);
  REQUIRE(whole.ops.size() == run.timeline.ops.size());
  for (std::size_t op = 0; op < whole.ops.size(); ++op) {
    CHECK(whole.ops[op].op == run.timeline.ops[op].op);
    CHECK(std::abs((whole.ops[op].start - run.timeline.ops[op].start).count()) < 2e-9);
    CHECK(std::abs((whole.ops[op].end - run.timeline.ops[op].end).count()) < 2e-9);
  }
}

TEST_CASE("profiles that are not the scenario's step are rejected") {
  const traces::test::Ran run;
  CHECK_THROWS_WITH_AS(read(run, profile(run, Rank(0), {.device = "true"})),
                       doctest::Contains("when the host queued each op"), InputError);
  CHECK_THROWS_WITH_AS(read(run, profile(run, Rank(0), {.without = 1})),
                       doctest::Contains("of the scenario's 4 runs"), InputError);
  const std::string other =
      traces::made::event("user_annotation", "F vision[0,1) work 0", 0, 1, "\"op\": 0");
  CHECK_THROWS_WITH_AS(read(run, profile(run, Rank(0), {.more = other, .without = 1})),
                       doctest::Contains("\"F vision[0,1) work 0\", is not that of the scenario"),
                       InputError);
  const std::string again =
      traces::made::event("user_annotation", describe(run.program, OpId(0)), 0, 1, "\"op\": 0");
  CHECK_THROWS_WITH_AS(read(run, profile(run, Rank(0), {.more = again, .without = 1})),
                       doctest::Contains("op 0 appears twice"), InputError);
}
