// Trace files written by Polyphony are read like profiler traces.
#include <doctest/doctest.h>

#include "shared/error.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "tests/shared/support/hand_made.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/traces/format/played_pipeline.h"
#include "tests/traces/kineto/made.h"
#include "traces/format/chrome_json.h"
#include "traces/kineto/summary.h"

using namespace polyphony;
using namespace polyphony::traces;

namespace {

std::string file_of(const traces::test::Ran& ran, Rank rank) {
  return write_trace(ran.program, traces::test::part_of(ran.program, ran.timeline, rank),
                     TraceKind::measured, 7);
}

}  // namespace

// Two forwards of 1 s and two backwards of 2 s on a rank: 6 s of computation without the update.
// The step has the name that torch.profiler would use, ProfilerStep#7.
TEST_CASE("trace files of a run are imported like those of a profiler") {
  const traces::test::Ran run;
  std::vector<DeviceTrace> traces;
  for (std::size_t rank = 0; rank < run.program.ranks; ++rank)
    traces.push_back(made::read(file_of(run, Rank(rank)), std::to_string(rank)));
  const RankSet ranks = rank_set(std::move(traces));
  REQUIRE(ranks.traces.size() == 4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const DeviceTrace& trace = ranks.traces[rank];
    CHECK(trace.rank == static_cast<int>(rank));
    CHECK(trace.world == 4);
    CHECK(trace.notes.empty());
    REQUIRE(trace.steps.size() == 1);
    CHECK(trace.steps[0].number == 7);
    REQUIRE(ranks.times[rank].steps.size() == 1);
    const DeviceTimes& times = ranks.times[rank].steps[0].times;
    CHECK(times == ranks.times[rank].whole);  // every op belongs to the step
    CHECK(Seconds(times.of(KernelClass::layers).kernels).count() == doctest::Approx(6));
    CHECK(times.of(KernelClass::unknown).count == 0);
    CHECK(times.of(KernelClass::optimizer).count == 1);
    CHECK(times.of(KernelClass::collective).count > 0);
  }
  CHECK(ranks.matched > 0);
  CHECK_FALSE(ranks.clocks[1].moved);
  const auto rows = collective_rows(ranks);
  const bool sums = std::any_of(rows.begin(), rows.end(), [](const CollectiveRow& row) {
    return row.shape.call == CollectiveCall::all_reduce && row.shape.ranks == 2 && row.bus;
  });
  CHECK(sums);
}

// The saved activations of all eight microbatches (gpipe) are copied to the host and back.
TEST_CASE("copies to the host and back count as copies, not as computation") {
  Scenario scenario = polyphony::test::scenario_at("scenarios/tiny_text_only.json");
  Layout layout = *scenario.layout;
  layout.schedule = ScheduleKind::gpipe;
  layout.microbatches = 8;
  scenario.data.global_batch = 8;
  for (ModuleLayout& grid : layout.modules) {
    grid = ModuleLayout{};
    grid.ranks = 1;
    grid.offload_activations = true;
  }
  const Program program =
      lower(scenario, layout, make_plan(scenario, layout), batch_of_step(scenario, 0));
  Timeline timeline;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const double start = 1e-3 * static_cast<double>(op);
    timeline.ops.push_back({OpId(op), Seconds(start), Seconds(start + 1e-3)});
  }
  timeline.makespan = timeline.ops.back().end;
  const std::string text = write_trace(program, timeline, TraceKind::measured, 7);
  CHECK(read_trace(text, "step.json", program).timeline.ops.size() == program.ops.size());
  std::vector<DeviceTrace> traces{made::read(text)};
  const RankSet ranks = rank_set(std::move(traces));
  const DeviceTimes& times = ranks.times[0].whole;
  CHECK(times.of(KernelClass::to_host).count == 8);
  CHECK(times.of(KernelClass::to_device).count == 8);
  CHECK(Seconds(times.of(KernelClass::to_host).kernels).count() == doctest::Approx(8e-3));
  CHECK(ranks.traces[0].events.size() == program.ops.size());
}

TEST_CASE("a file of several ranks is rejected") {
  const traces::test::Ran run;
  const std::string text = write_trace(run.program, run.timeline, TraceKind::measured, 7);
  CHECK_THROWS_WITH_AS(made::read(text), doctest::Contains("the file holds several ranks"),
                       InputError);
}
