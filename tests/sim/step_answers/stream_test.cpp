// A stream of batches: a huge sample is named, and risks equal closed forms.
#include "sim/step_answers/stream.h"

#include <doctest/doctest.h>

#include <cmath>

#include "shared/check/check.h"
#include "shared/hardware/devices.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/scenario_json.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/console/console.h"
#include "sim/prediction/jitter.h"
#include "tests/shared/support/schema_validator.h"
#include "traces/compare/compare.h"

namespace polyphony::tests {
namespace {

using namespace sim;

// 64 samples with one image each, except number 41, which has thirty.
std::vector<Sample> one_huge() {
  std::vector<Sample> samples;
  for (std::uint32_t id = 0; id < 64; ++id) {
    Sample sample{id, {}};
    for (int image = 0; image < (id == 41 ? 30 : 1); ++image)
      sample.items.push_back({Modality::image, 64, 0});
    sample.items.push_back({Modality::text, 48, 16});
    samples.push_back(sample);
  }
  return samples;
}

Scenario recorded_scenario() {
  Scenario scenario =
      read_scenario(read_file("scenarios/rehearse_8.json"), "scenarios/rehearse_8.json", read_file);
  scenario.data.source = RecordedData{"unused"};
  scenario.data.samples = one_huge();
  return scenario;
}

BatchStream with_peaks(const std::vector<std::int64_t>& peaks, std::int64_t device) {
  BatchStream stream;
  stream.stages = {"all"};
  stream.device = Bytes(device);
  for (const std::int64_t peak : peaks) {
    StreamBatch batch;
    batch.peaks = {Bytes(peak)};
    stream.batches.push_back(batch);
  }
  return stream;
}

}  // namespace

// 32 samples per batch: each epoch of two batches contains the huge sample once.
TEST_CASE("a batch with one huge sample has the peak, and the sample is named") {
  const Scenario scenario = recorded_scenario();
  const HardwareProfile profile = *find_profile("cpu-core-roofline");
  StreamOptions options;
  options.batches = 6;
  options.jobs = 2;
  const BatchStream stream = predict_stream(scenario, *scenario.layout, profile, options);
  REQUIRE(stream.batches.size() == 6);
  CHECK(stream.failed.empty());
  CHECK(stream.stages.size() == 8);
  for (const StreamBatch& batch : stream.batches) {
    bool huge = false;
    for (const Sample& sample : batch_of_step(scenario, batch.number).samples)
      huge = huge || sample.id == 41;
    REQUIRE_FALSE(batch.samples.empty());
    CHECK((batch.samples[0].id == 41) == huge);
    const StreamBatch& other = stream.batches[batch.number ^ 1];
    CHECK((stream.peak(batch) > stream.peak(other)) == huge);
    if (!huge) continue;
    const std::vector<std::pair<Modality, std::int64_t>> expected{{Modality::text, 48},
                                                                  {Modality::image, 30 * 64}};
    CHECK(batch.samples[0].tokens == expected);
    // It has more than half of the memory at the peak.
    CHECK(2 * batch.samples[0].held.value > stream.peak(batch).value / 2);
  }
  // One process and two give the same answer.
  options.jobs = 1;
  const BatchStream again = predict_stream(scenario, *scenario.layout, profile, options);
  for (std::size_t i = 0; i < 6; ++i) CHECK(again.batches[i].peaks == stream.batches[i].peaks);
}

// Idle time computed differently: the step minus the busy time of compute streams
// (traces/compare/compare.h).
TEST_CASE("bubbles of a batch are the idle time of its compute streams") {
  Scenario scenario = recorded_scenario();
  Layout& layout = *scenario.layout;
  layout.planner = Planning::entrain;
  store_planned(layout, make_plan(scenario, layout), scenario);
  REQUIRE_FALSE(check_layout(scenario, layout).has_value());
  const HardwareProfile profile = *find_profile("cpu-core-roofline");
  StreamOptions options;
  options.batches = 4;
  const BatchStream stream = predict_stream(scenario, layout, profile, options);
  CHECK(stream.planner == "entrain");
  REQUIRE(stream.batches.size() == 4);
  for (const StreamBatch& batch : stream.batches) {
    const auto outcome = predict(scenario, layout, batch_of_step(scenario, batch.number), profile,
                                 Predictor::estimate);
    const auto& prediction = std::get<Prediction>(outcome);
    const auto parts = traces::part_times(prediction.program, prediction.timeline);
    const auto idle = [&](const traces::PartTimes& times) {
      return times[static_cast<std::size_t>(traces::Part::idle)] / prediction.step();
    };
    double worst = 0;
    for (const traces::PartTimes& times : parts) worst = std::max(worst, idle(times));
    CHECK(batch.bubbles.mean == doctest::Approx(idle(traces::mean(parts))));
    CHECK(batch.bubbles.worst == doctest::Approx(worst));
    CHECK(batch.bubbles.mean > 0.05);
    CHECK(batch.bubbles.communication > 0);
    CHECK(batch.bubbles.communication < batch.bubbles.mean);
  }
  const auto answer = to_json(stream, 100);
  const auto schema = nlohmann::json::parse(stream_schema());
  CHECK(test::SchemaValidator(schema).accepts(answer, schema));
  CHECK(answer["bubbles"]["mean"].contains("p50"));
  CHECK_FALSE(answer["bubbles"]["mean"].contains("p5"));  // of four batches the least is p25
  auto without = answer;
  without.erase("bubbles");
  CHECK_FALSE(test::SchemaValidator(schema).accepts(without, schema));
}

// Of 1 to 100: five at most 5, ninety-five at most 95.
TEST_CASE("percentiles in both tails of a stream") {
  BatchStream stream = with_peaks(std::vector<std::int64_t>(100, 7), 100);
  for (std::size_t i = 0; i < 100; ++i) {
    stream.batches[i].step = Seconds(static_cast<double>(100 - i));
    stream.batches[i].bubbles.mean = static_cast<double>(i + 1) / 100;
  }
  stream.batches[0].samples.clear();
  const auto answer = to_json(stream, 10);
  CHECK(answer["step"]["p5_seconds"] == 5);
  CHECK(answer["step"]["p50_seconds"] == 50);
  CHECK(answer["step"]["p95_seconds"] == 95);
  CHECK_FALSE(answer["step"].contains("p99.9_seconds"));
  CHECK(answer["step"]["largest_seconds"] == 100);
  CHECK(answer["bubbles"]["mean"]["p95"] == 0.95);
  CHECK(answer["stages"][0]["p5_bytes"] == 7);
}

// None of 300: at most 1 - 0.05^(1/300), about 3/300 a step.
TEST_CASE("memory risk: the rule of three without exceedances, otherwise their share") {
  std::vector<std::int64_t> peaks(300, 50);
  const MemoryRisk none = memory_risk(with_peaks(peaks, 100), 10);
  CHECK(none.exceeded == 0);
  CHECK(none.per_step == 0);
  CHECK(none.per_step_most == doctest::Approx(3.0 / 300).epsilon(0.01));
  CHECK(none.in_run_most == doctest::Approx(1 - std::pow(1 - none.per_step_most, 10)));
  CHECK(none.per_step_tail == 0.0);
  peaks[3] = peaks[4] = peaks[5] = 101;
  const MemoryRisk some = memory_risk(with_peaks(peaks, 100), 10);
  CHECK(some.exceeded == 3);
  CHECK(some.per_step == doctest::Approx(0.01));
  CHECK(some.in_run == doctest::Approx(1 - std::pow(0.99, 10)));
}

// Quantiles of 1,000 + 100·exponential: P(X > 1,000 + 100 t) = e^-t.
TEST_CASE("an exponential tail is recovered") {
  std::vector<Bytes> values;
  for (int i = 0; i < 4000; ++i)
    values.emplace_back(std::llround(1e6 - 1e5 * std::log((i + 0.5) / 4000)));
  CHECK(exponential_tail(values, Bytes(1'600'000)).value() ==
        doctest::Approx(std::exp(-6.0)).epsilon(0.1));
  CHECK(exponential_tail(values, Bytes(1'050'000)).value() ==
        doctest::Approx(std::exp(-0.5)).epsilon(0.01));
  // Ten values have no tail: the probability is not known, not one.
  CHECK_FALSE(exponential_tail({values.begin(), values.begin() + 10}, Bytes(1)));
}

TEST_CASE("quantiles that need more values are replaced by the largest value") {
  std::vector<Seconds> steps;
  for (int i = 1; i <= 100; ++i) steps.emplace_back(i);
  CHECK(quantiles_text(steps, {0.5, 0.99}).starts_with("p50 50.50 s, p99 "));
  CHECK(quantiles_text(steps, {0.5, 0.999}) == "p50 50.50 s, largest of 100: 100.0 s");
  // It is printed once, even if several quantiles need more values.
  CHECK(quantiles_text({Seconds(1), Seconds(2)}, {0.95, 0.999}) == "largest of 2: 2.00 s");
}

TEST_CASE("jitter: a few seeds are simulated, and are never below their estimates") {
  const Scenario scenario = recorded_scenario();
  Batch batch = batch_of_step(scenario, 0);
  const HardwareProfile profile = *find_profile("cpu-core-roofline");
  const auto outcome = predict(scenario, *scenario.layout, batch, profile, Predictor::simulate);
  const auto& prediction = std::get<Prediction>(outcome);
  Jitter jitter;
  jitter.of[0] = jitter.of[1] = {0.1, 0.1};
  const auto quiet = [](double) {};
  const auto played = sim::jittered_steps(prediction, jitter, 4, Predictor::simulate, 2, quiet);
  const auto walked = sim::jittered_steps(prediction, jitter, 4, Predictor::estimate, 2, quiet);
  const auto& simulated = std::get<JitteredSteps>(played);
  const auto& estimated = std::get<JitteredSteps>(walked);
  CHECK(simulated.simulated);
  CHECK_FALSE(estimated.simulated);
  for (std::size_t i = 0; i < 4; ++i) CHECK(simulated.steps[i] >= estimated.steps[i] * (1 - 1e-6));
  const auto many =
      sim::jittered_steps(prediction, jitter, kSimulatedSeeds + 1, Predictor::simulate, 2, quiet);
  CHECK_FALSE(std::get<JitteredSteps>(many).simulated);
}

}  // namespace polyphony::tests
