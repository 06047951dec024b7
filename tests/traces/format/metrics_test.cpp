#include "traces/format/metrics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace polyphony::traces {
namespace {

std::string step_line(std::int64_t step) {
  return to_line(StepMetrics{step, 2.5 - 0.125 * static_cast<double>(step), 0.75, false, 1e-3,
                             Seconds(0.25), 32}) +
         "\n";
}
using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a line of metrics is read back, also with NaN") {
  const StepMetrics step{3,
                         std::numeric_limits<double>::quiet_NaN(),
                         std::numeric_limits<double>::infinity(),
                         true,
                         1e-3,
                         Seconds(0.1),
                         80};
  const auto read = parse_metrics_line(to_line(step));
  REQUIRE(read);
  const auto& back = std::get<StepMetrics>(*read);
  CHECK(back.step == 3);
  CHECK(std::isnan(back.loss));
  CHECK(std::isnan(back.gradient_norm));
  CHECK(back.skipped);
  CHECK(back.seconds == Seconds(0.1));
  CHECK_FALSE(back.late_plan);
  StepMetrics live = step;
  live.late_plan = true;
  live.waited = Seconds(0.5);
  live.saving = Seconds(0.25);
  const auto again = parse_metrics_line(to_line(live));
  REQUIRE(again);
  CHECK(std::get<StepMetrics>(*again).late_plan == true);
  CHECK(std::get<StepMetrics>(*again).waited == Seconds(0.5));
  CHECK(std::get<StepMetrics>(*again).saving == Seconds(0.25));
  CHECK(to_line(step).find("saving") == std::string::npos);  // no checkpoint, no key
  const auto accuracy = parse_metrics_line(to_line(Accuracy{50, 0.71, 512}));
  REQUIRE(accuracy);
  CHECK(std::get<Accuracy>(*accuracy).share == 0.71);
  CHECK(std::get<Accuracy>(*accuracy).held_out == 512);
}

TEST_CASE("skipped steps and rewinds are read back and counted by reason") {
  StepMetrics skipped{3, 9, 2, true, 1e-3, Seconds(0.1), 80};
  std::string text = step_line(0) + step_line(1) + step_line(2) + to_line(skipped) + "\n";
  skipped.step = 4;
  skipped.why = "loss";
  text += to_line(skipped) + "\n";
  const std::string first = to_line(Rewind{3, 1, 7, 5, "gradient norm"}) + "\n",
                    second = to_line(Rewind{5, 2, 6, 2, "gradient norm"}) + "\n";
  const Metrics metrics = parse_metrics(text + first + second);
  CHECK(metrics.damage.empty());
  REQUIRE(metrics.lines.size() == 7);
  CHECK(std::get<StepMetrics>(metrics.lines[3]).why.empty());
  CHECK(std::get<StepMetrics>(metrics.lines[4]).why == "loss");
  const auto& rewind = std::get<Rewind>(metrics.lines[5]);
  CHECK(rewind.step == 3);
  CHECK(rewind.number == 1);
  CHECK(rewind.from == 7);
  CHECK(rewind.passed_over == 5);
  CHECK(rewind.why == "gradient norm");
  CHECK(bad_steps_of(metrics).text() ==
        "2 steps were skipped (loss: 1, non-finite values: 1), 2 rewinds (gradient norm: 2)");
  CHECK(bad_steps_of({}).text().empty());

  // A checkpoint of step 3 that was written before the first rewind to it, and one after it.
  CHECK(metrics_until(text + first + second, 3, 0).text ==
        step_line(0) + step_line(1) + step_line(2));
  CHECK(metrics_until(text + first + second, 5, 1).text == text + first);
}

TEST_CASE("a flipped bit in a line is always detected") {
  const std::string line = to_line(StepMetrics{7, 1.5, 0.5, false, 1e-3, Seconds(0.25), 32});
  for (std::size_t bit = 0; bit < 8 * line.size(); ++bit) {
    std::string damaged = line;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    CAPTURE(damaged);
    CHECK(!parse_metrics_line(damaged));
  }
}

TEST_CASE("metrics_until() returns the lines of the first steps and what is missing") {
  const std::string accuracy = to_line(Accuracy{4, 0.5, 8}) + "\n";
  std::string text;
  for (int step = 0; step < 6; ++step) {
    text += step_line(step);
    if (step == 3) text += accuracy;
  }
  CHECK(parse_metrics(text).lines.size() == 7);
  CHECK(parse_metrics(text).damage.empty());

  // A killed run: its last line is truncated, and the steps after the checkpoint are lost.
  const Metrics kept = metrics_until(text + "{\"step\": 6, \"lo", 4);
  CHECK(kept.damage.empty());
  CHECK(kept.text == text.substr(0, text.find(accuracy) + accuracy.size()));

  const std::string without_2 = step_line(0) + step_line(1) + step_line(3);
  CHECK(metrics_until(without_2, 4).damage == Lines{"step 2 is missing"});
  CHECK(metrics_until(step_line(0), 4).damage == Lines{"steps 1 to 3 are missing"});
  CHECK(metrics_until("", 4).damage == Lines{"steps 0 to 3 are missing"});
  CHECK(metrics_until(step_line(0) + "x\n" + step_line(1), 2).damage == Lines{"line 2 is damaged"});
  const Metrics twice = metrics_until(step_line(0) + step_line(1) + step_line(1), 2);
  CHECK(twice.damage == Lines{"line 3 repeats step 1"});
  CHECK(twice.text == step_line(0) + step_line(1));
}

}  // namespace polyphony::traces
