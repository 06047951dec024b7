// The answer for a replay of a profiler's traces: numbers, schema, text.
#include "sim/replay/kernel_replay.h"

#include <doctest/doctest.h>

#include "sim/replay/kernel_replay_json.h"
#include "sim/shown_runs/kernel_replay_text.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/shared/support/schema_validator.h"
#include "traces/kineto/kineto.h"

namespace polyphony::tests {
namespace {

using namespace sim;

traces::RankSet sample(const std::string& name) {
  const std::string path = "traces/samples/" + name + ".json.gz";
  const std::string bytes = test::file_text(path);
  return traces::rank_set({traces::read_kineto(traces::bytes_of(bytes), path)});
}

Seconds on_path(const PlayedKernels& played) {
  Seconds sum{};
  for (const PathDifference& row : played.path) sum += row.before;
  return sum;
}

}  // namespace

TEST_CASE(
    "replay of a profiler's traces: unchanged it equals the measured step, and its path adds up") {
  for (const char* name : {"nccl_data", "llama_8b_eager", "qwen3_30b_eager"}) {
    CAPTURE(name);
    const traces::RankSet ranks = sample(name);
    const KernelReplayAnswer answer = replay_kernels(ranks, {}, {});
    CHECK(std::abs(answer.replay_error) < 1e-6);
    CHECK(answer.rank_error < 1e-6);
    CHECK_FALSE(answer.after);
    const traces::RecordedGraph recorded = traces::recorded_graph(ranks);
    Seconds all{};
    for (const Seconds step : traces::step_windows(recorded.graph, recorded.times).all) all += step;
    CHECK(on_path(answer.before).count() ==
          doctest::Approx(all.count() / static_cast<double>(answer.measured.count)).epsilon(1e-6));
  }
}

// The device mostly runs GEMMs. Their part of the longest path becomes at most a third shorter.
TEST_CASE("replay of a profiler's traces: a faster class, in numbers, JSON and words") {
  const traces::RankSet ranks = sample("llama_8b_eager");
  const KernelReplayAnswer answer =
      replay_kernels(ranks, {.faster = {{"gemm", 1.5}}}, {"gemm=1.5 as fast"});
  REQUIRE(answer.after);
  Seconds products{};
  for (const PathDifference& row : answer.before.path)
    if (row.label == "gemm") products = row.before;
  CHECK(products > 0.3 * answer.measured.mean);
  const Seconds saved = answer.before.steps.mean - answer.after->steps.mean;
  CHECK(saved.count() > 0);
  CHECK(saved.count() <= doctest::Approx(products.count() / 3));
  CHECK(answer.after->mixture.at("gemm")[static_cast<std::size_t>(traces::Origin::measured)] ==
        Seconds{});
  CHECK(answer.after->mixture.at("attention")[static_cast<std::size_t>(traces::Origin::scaled)] ==
        Seconds{});
  Seconds difference{};
  for (const PathDifference& row : answer.differences) difference += row.difference();
  CHECK(difference.count() == doctest::Approx(-saved.count()).epsilon(1e-6));

  const nlohmann::json root = nlohmann::json::parse(kernel_replay_schema());
  CHECK(test::SchemaValidator(root).accepts(to_json(answer), root));
  const std::string text = kernel_replay_text(answer);
  for (const char* wanted :
       {"replayed unchanged", "changed: gemm=1.5 as fast", "step (median)", "idle", "scaled"})
    CHECK_MESSAGE(text.find(wanted) != std::string::npos, wanted);
  const std::string page = traces::to_html(kernel_replay_page(answer));
  for (const char* wanted : {"What explains the difference", "Before: as measured, replayed",
                             "After: changed", "class=\"forward\"", "attention: "})
    CHECK_MESSAGE(page.find(wanted) != std::string::npos, wanted);
  // No event is outside the step shown, and compute takes at most all of it.
  for (const PlayedKernels* played : {&answer.before, &*answer.after}) {
    Seconds busy{};
    for (const PlayedEvent& event : played->events.at(0)) {
      CHECK(event.end <= played->shown + Seconds(1e-9));
      busy += event.end - event.start;
    }
    CHECK(busy > 0.9 * played->shown);  // 185.3 of 187.0 ms, says traces/samples/README.md
    CHECK(busy <= played->shown + Seconds(1e-9));
  }
}

}  // namespace polyphony::tests
