// A profile is recovered from step times that it generated; parameters without influence stay.
#include "sim/evidence/step_fit.h"

#include <doctest/doctest.h>

#include <cmath>

#include "shared/chance/belief.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "shared/scenario_io/scenario_profile.h"
#include "shared/statistics.h"
#include "sim/evidence/evidence_json.h"
#include "sim/evidence/quick_step.h"
#include "sim/published/case.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {
namespace {

using namespace sim;

// Four blocks of Llama-3.1-8B's dimensions on a node of eight H100.
Scenario llama(int microbatches) {
  const std::string text = R"({"polyphony": 1,
    "model": {"language": {"preset": "llama-3.1-8b", "layers": 4}},
    "cluster": {"node": {"device": "H100", "ranks": 8}},
    "data": {"source": "synthetic", "text": {"tokens": 4096}, "sequence": 4096, "global_batch": 32},
    "layout": {"placement": "homogeneous", "microbatches": )" +
                           std::to_string(microbatches) + R"(, "language": {"tp": 2, "pp": 2}},
    "training": {"precision": "bf16"}})";
  return read_scenario(text, "s.json", test::file_text);
}

HardwareProfile prior_of_fit() { return *find_profile(default_profile("H100")); }

StepEvidence measured_by(const HardwareProfile& truth, const Scenario& scenario, double times = 1) {
  StepEvidence evidence;
  evidence.source = "made";
  evidence.scenario = scenario;
  evidence.step = times * quick_step(scenario, truth).step();
  return evidence;
}

const ParameterMove& move(const StepCalibration& fit, const std::string& key) {
  for (const ParameterMove& one : fit.parameters)
    if (one.key == key) return one;
  FAIL(key);
  return fit.parameters.front();
}

}  // namespace

TEST_CASE(
    "one step time moves every layout's prediction towards the truth and narrows its interval") {
  HardwareProfile truth = prior_of_fit();
  truth.gemm_efficiency *= 0.9;
  const Scenario known = llama(8), asked = llama(4);
  const StepCalibration fit = calibrate_steps(prior_of_fit(), {measured_by(truth, known)}, "ours");
  const double before = std::log(quick_step(asked, prior_of_fit()).step() /
                                 quick_step(asked, truth).step()),
               after = std::log(quick_step(asked, fit.profile).step() /
                                quick_step(asked, truth).step());
  CHECK(std::abs(after) < std::abs(before));
  CHECK(fit.profile.gemm_efficiency < prior_of_fit().gemm_efficiency);
  CHECK(move(fit, "gemm_efficiency").moved);
  CHECK(move(fit, "gemm_efficiency").deviation < move(fit, "gemm_efficiency").prior_deviation);
  CHECK_FALSE(fit.rows[0].outlier);
  // The profile's file contains the fitted values, and can be read.
  const HardwareProfile back = parse_profile(readable_json(fit.profile, "out"), "out");
  CHECK(back.certainty == fit.profile.certainty);
  CHECK(back.certainty.footing == Footing::stated);
  const auto width = [&](const HardwareProfile& profile) {
    const Prediction prediction = quick_step(asked, profile);
    return make_belief(
               prediction.step(),
               step_effects(prediction.program, prediction.compiled, asked.cluster, profile),
               profile)
        .deviation();
  };
  CHECK(width(back) < width(prior_of_fit()));
}

// 22 % beyond the prediction: more than the parameters explain.
TEST_CASE("after the fit the measured layout is predicted as it was measured") {
  const StepEvidence log = measured_by(prior_of_fit(), llama(8), 1.22);
  const StepCalibration fit = calibrate_steps(prior_of_fit(), {log}, "ours");
  REQUIRE_FALSE(fit.rows[0].outlier);
  CHECK(fit.rows[0].after / *log.step == doctest::Approx(1).epsilon(0.01));
  const auto belief_of = [&](const Scenario& scenario, const HardwareProfile& profile) {
    const Prediction prediction = quick_step(scenario, profile);
    return make_belief(
        prediction.step(),
        step_effects(prediction.program, prediction.compiled, scenario.cluster, profile), profile,
        scenario, prediction.program.layout);
  };
  const HardwareProfile back = parse_profile(readable_json(fit.profile, "out"), "out");
  CHECK(back.certainty == fit.profile.certainty);
  const Belief same = belief_of(log.scenario, back), other = belief_of(llama(4), back);
  const SecondsInterval bounds = interval(same);
  CHECK(bounds.low < *log.step);
  CHECK(bounds.high > *log.step);
  CHECK(same.deviation() < other.deviation());
  // Calibrated on the same again, it still is.
  const StepCalibration twice = calibrate_steps(back, {log}, "ours");
  CHECK(twice.rows[0].after / *log.step == doctest::Approx(1).epsilon(0.01));
  CHECK(twice.profile.certainty.misses.size() == 1);
  // The other layout has less of the miss, and no more than the parameters alone would tell.
  HardwareProfile parameters = back;
  parameters.certainty.misses.clear();
  const double more = other.step / quick_step(llama(4), parameters).step(),
               whole = same.step / quick_step(log.scenario, parameters).step();
  CHECK(more > 1);
  CHECK(more < whole);
}

TEST_CASE("a parameter that no step time depends on keeps its prior, and is marked") {
  // All ranks in one node: nothing crosses the fabric.
  const StepCalibration fit =
      calibrate_steps(prior_of_fit(), {measured_by(prior_of_fit(), llama(8), 1.05)}, "ours");
  const ParameterMove& fabric = move(fit, "fabric_efficiency");
  CHECK_FALSE(fabric.moved);
  CHECK(fabric.value == fabric.prior);
  CHECK(fabric.deviation == doctest::Approx(fabric.prior_deviation));
}

TEST_CASE("a step time that is ten times off is an outlier, alone and among good ones") {
  const StepEvidence good = measured_by(prior_of_fit(), llama(8), 1.03),
                     also = measured_by(prior_of_fit(), llama(4), 1.03),
                     bad = measured_by(prior_of_fit(), llama(8), 10);
  const StepCalibration mixed = calibrate_steps(prior_of_fit(), {good, bad, also}, "ours");
  CHECK_FALSE(mixed.rows[0].outlier);
  CHECK(mixed.rows[1].outlier);
  CHECK_FALSE(mixed.rows[2].outlier);
  const StepCalibration clean = calibrate_steps(prior_of_fit(), {good, also}, "ours");
  CHECK(mixed.profile.gemm_efficiency == doctest::Approx(clean.profile.gemm_efficiency));
  const StepCalibration alone = calibrate_steps(prior_of_fit(), {bad}, "ours");
  CHECK(alone.rows[0].outlier);
  CHECK(alone.profile.gemm_efficiency == prior_of_fit().gemm_efficiency);
}

TEST_CASE("parameters stay within their valid range, however fast a run was") {
  StepEvidence fast = measured_by(prior_of_fit(), llama(8), 0.75);
  HardwareProfile wide = prior_of_fit();
  wide.certainty.footing = Footing::stated;
  wide.certainty.errors = {{{"gemm_efficiency", 2}}, {{"attention_efficiency", 2}}};
  const StepCalibration fit = calibrate_steps(wide, {fast}, "ours");
  CHECK(fit.profile.gemm_efficiency <= 1);
  CHECK(fit.profile.attention_efficiency <= 1);
  parse_profile(readable_json(fit.profile, "out"), "out");
}

TEST_CASE("the linear update of published rows equals the calibration's, up to its curvature") {
  // 5 % slow, one error that the step depends on by `slope`: z = e · s / (e² + own²), e = slope ·
  // error.
  HardwareProfile one = prior_of_fit();
  one.certainty.footing = Footing::stated;
  one.certainty.residual = 0.05;
  one.certainty.errors = {{{"gemm_efficiency", 0.05}}};
  const Scenario scenario = llama(8);
  const StepCalibration fit = calibrate_steps(one, {measured_by(one, scenario, 1.05)}, "ours");
  const Prediction prediction = quick_step(scenario, one);
  const double effect =
      step_effects(prediction.program, prediction.compiled, scenario.cluster, one)[0];
  const double own = std::hypot(0.05, 0.01);
  const double z = effect * std::log(1.05) / (effect * effect + own * own);
  CHECK(std::log(fit.profile.gemm_efficiency / one.gemm_efficiency) ==
        doctest::Approx(0.05 * z).epsilon(0.05));
  CHECK(fit.rows[0].unseen == doctest::Approx(std::log(1.05)).epsilon(0.01));
}

TEST_CASE("memory is compared with the prediction and changes no parameter") {
  StepEvidence evidence;
  evidence.source = "peak";
  evidence.scenario = llama(8);
  evidence.memory = Bytes(std::int64_t{1} << 30);
  const StepCalibration fit = calibrate_steps(prior_of_fit(), {evidence}, "ours");
  CHECK(fit.parameters.empty());
  CHECK(fit.profile.certainty == prior_of_fit().certainty);
  CHECK(fit.rows[0].predicted_memory.value > 0);
  CHECK(to_json(fit)["evidence"][0]["memory_bytes"] == (1 << 30));
}

TEST_CASE("evidence files: read, rejected with their position") {
  const auto refused = [](const std::string& run) {
    try {
      read_evidence("{\"evidence\": 1, \"runs\": [" + run + "]}", "e.json");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("read");
  };
  const auto entries = read_evidence(
      R"({"evidence": 1, "runs": [{"scenario": "a.json", "step_time": "1.5s", "noise": 0.02,
          "memory": "2GiB"}, {"scenario": "b.json", "log": "b.log"}]})",
      "e.json");
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].step == Seconds(1.5));
  CHECK(entries[0].noise == 0.02);
  CHECK(entries[0].memory == Bytes(std::int64_t{2} << 30));
  CHECK(entries[1].log == "b.log");
  CHECK(refused(R"({"scenario": "a.json"})").find("/runs/0: contains no measurement") !=
        std::string::npos);
  CHECK(refused(R"({"scenario": "a.json", "step_time": "0s"})").find("must be positive") !=
        std::string::npos);
  CHECK(refused(R"({"scenario": "a.json", "step_time": "1s", "log": "x"})")
            .find("a step time and a log") != std::string::npos);
  CHECK(refused(R"({"scenario": "a.json", "step_time": 12})").find("/runs/0/step_time") !=
        std::string::npos);
  CHECK(is_evidence("{\"evidence\": 1}", "e.json"));
  CHECK_FALSE(is_evidence("{\"traceEvents\": []}", "e.json"));
  CHECK_FALSE(is_evidence("iteration 1/ 5 |", "e.log"));
}

TEST_CASE("a log is evidence for its own scenario") {
  const Scenario scenario = llama(8);
  const traces::StepWork work = work_of(scenario, prior_of_fit());
  CHECK(work.ranks == 8);
  CHECK(work.samples == scenario.data.global_batch);
  traces::FrameworkLog log;
  log.attempts.resize(1);
  for (const double rate : {50.0, 100.0}) {
    traces::LoggedStep line;
    line.step = static_cast<std::int64_t>(log.attempts[0].size()) + 1;
    line.tokens_per_second_per_rank = rate;
    log.attempts[0].push_back(line);
  }
  // Of two lines the first is warm-up: tokens / 8 / 100.
  const StepEvidence evidence = evidence_of_log(log, scenario, prior_of_fit(), "run.log");
  CHECK(evidence.step->count() == doctest::Approx(static_cast<double>(work.tokens) / 800));
  log.attempts[0][1].global_batch = scenario.data.global_batch + 1;
  CHECK_THROWS_AS(evidence_of_log(log, scenario, prior_of_fit(), "run.log"), InputError);
}

}  // namespace polyphony::tests
