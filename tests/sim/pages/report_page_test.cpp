// Sections of the report: which runs count as predicted, and training.
#include "sim/pages/report_page.h"

#include <doctest/doctest.h>

#include <limits>

namespace polyphony::tests {
namespace {

using namespace sim;

RunSummary run(traces::Verdict verdict) {
  return {"runs/a", "homogeneous", Seconds(2), 0.01, 0.25, std::nullopt, verdict};
}
std::vector<RunSummary> runs() {
  using enum traces::Verdict;
  return {run(within), run(outside), run(within), run(unknown)};
}

}  // namespace

TEST_CASE("runs within the bar are counted, undecided ones apart") {
  const RunCounts counts = count_verdicts(runs());
  CHECK(counts.within == 2);
  CHECK(counts.unknown == 1);
  const traces::Fact fact = runs_fact(runs(), 0.1);
  CHECK(fact.value == "2 of 4");
  CHECK(fact.label.find("of 1 the measured steps differ") != std::string::npos);
  CHECK(runs_fact({run(traces::Verdict::within)}, 0.1).label ==
        "runs within max(10 %, 2x repeatability)");
}

TEST_CASE("the table of runs has both errors, or a dash where nothing was calibrated") {
  RunSummary calibrated = run(traces::Verdict::within);
  calibrated.after = -0.05;
  const traces::Section section =
      runs_section({run(traces::Verdict::within), calibrated}, "Before: x");
  const auto& table = std::get<traces::Table>(section.blocks.at(0));
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0] ==
        std::vector<std::string>{"runs/a", "homogeneous", "2.00 s", "±1.0 %", "+25.0 %", "-"});
  CHECK(table.rows[1].back() == "-5.0 %");
  CHECK(table.note.starts_with("Before: x. Repeatability"));
}

TEST_CASE("training: accuracies in a table, losses that are numbers in a chart") {
  traces::Metrics metrics;
  metrics.lines = {traces::StepMetrics{.step = 0, .loss = 3},
                   traces::StepMetrics{.step = 1, .loss = std::numeric_limits<double>::quiet_NaN()},
                   traces::StepMetrics{.step = 2, .loss = 2, .skipped = true},
                   traces::Accuracy{3, 0.75, 8}, traces::Rewind{2, 1, 5, 4, "loss"}};
  const traces::Section section = training_section({{"runs/a", metrics}});
  const auto& table = std::get<traces::Table>(section.blocks.at(0));
  CHECK(table.rows == std::vector<std::vector<std::string>>{{"runs/a", "3", "75.0 %", "8"}});
  CHECK(table.note == "runs/a: 1 step was skipped (non-finite values: 1), 1 rewind (loss: 1)");
  CHECK(std::get<traces::Figure>(section.blocks.at(1)).svg.find("nan") == std::string::npos);
}

}  // namespace polyphony::tests
