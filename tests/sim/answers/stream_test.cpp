// A stream of batches: the huge sample is named, risks are those of the closed forms.
#include "sim/answers/stream.h"

#include <doctest/doctest.h>

#include <cmath>

#include "shared/hardware/devices.h"
#include "shared/scenario/scenario_json.h"
#include "shared/scenario/typical_batch.h"
#include "sim/console/console.h"
#include "sim/prediction/jitter.h"

namespace polyphony::tests {
namespace {

using namespace sim;

// 64 samples of one image; number 41 has thirty.
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

// 32 samples a batch: each epoch of two batches has the huge one once.
TEST_CASE("a batch with one huge sample is the peak, and the sample is named") {
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
    // More than half of the peak is its.
    CHECK(2 * batch.samples[0].held.value > stream.peak(batch).value / 2);
  }
  // Alone or in two processes, the same.
  options.jobs = 1;
  const BatchStream again = predict_stream(scenario, *scenario.layout, profile, options);
  for (std::size_t i = 0; i < 6; ++i) CHECK(again.batches[i].peaks == stream.batches[i].peaks);
}

// None of 300: at most 1 - 0.05^(1/300), about 3/300 a step.
TEST_CASE("no exceedance leaves the rule of three, some leave their share") {
  std::vector<std::int64_t> peaks(300, 50);
  const MemoryRisk none = memory_risk(with_peaks(peaks, 100), 10);
  CHECK(none.exceeded == 0);
  CHECK(none.per_step == 0);
  CHECK(none.per_step_most == doctest::Approx(3.0 / 300).epsilon(0.01));
  CHECK(none.in_run_most == doctest::Approx(1 - std::pow(1 - none.per_step_most, 10)));
  CHECK(none.per_step_tail == 0);
  peaks[3] = peaks[4] = peaks[5] = 101;
  const MemoryRisk some = memory_risk(with_peaks(peaks, 100), 10);
  CHECK(some.exceeded == 3);
  CHECK(some.per_step == doctest::Approx(0.01));
  CHECK(some.in_run == doctest::Approx(1 - std::pow(0.99, 10)));
}

// Quantiles of 1,000 + 100·exponential: P(X > 1,000 + 100 t) = e^-t.
TEST_CASE("an exponential tail is found") {
  std::vector<Bytes> values;
  for (int i = 0; i < 4000; ++i)
    values.emplace_back(std::llround(1e6 - 1e5 * std::log((i + 0.5) / 4000)));
  CHECK(exponential_tail(values, Bytes(1'600'000)) == doctest::Approx(std::exp(-6.0)).epsilon(0.1));
  CHECK(exponential_tail(values, Bytes(1'050'000)) ==
        doctest::Approx(std::exp(-0.5)).epsilon(0.01));
}

TEST_CASE("quantiles that so few numbers do not reach are called the largest") {
  std::vector<Seconds> steps;
  for (int i = 1; i <= 100; ++i) steps.emplace_back(i);
  CHECK(quantiles_text(steps, {0.5, 0.99}).starts_with("p50 50.50 s, p99 "));
  CHECK(quantiles_text(steps, {0.5, 0.999}) == "p50 50.50 s, largest of 100: 100.0 s");
  // Once, however many are not reached.
  CHECK(quantiles_text({Seconds(1), Seconds(2)}, {0.95, 0.999}) == "largest of 2: 2.00 s");
}

TEST_CASE("jitter on SimGrid: a few seeds are simulated, and never below their estimate") {
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
