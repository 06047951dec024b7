// Efficiencies planted in the profile of a GPU are recovered, and predict other layouts.
#include "sim/evidence/kernel_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "shared/hardware/parameter.h"
#include "shared/scenario_io/scenario_profile.h"
#include "sim/evidence/step_fit.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/sim/evidence/made_profile.h"

namespace polyphony::tests {
namespace {

using namespace sim;

// Four blocks of Llama-3.1-8B's dimensions on a node of four H100.
Scenario llama_laid_out(const std::string& layout, int microbatches = 4) {
  const std::string text = R"({"polyphony": 1,
    "model": {"language": {"preset": "llama-3.1-8b", "layers": 4}},
    "cluster": {"node": {"device": "H100", "ranks": 4}},
    "data": {"source": "synthetic", "text": {"tokens": 4096}, "sequence": 4096, "global_batch": 16},
    "layout": {"placement": "homogeneous", "microbatches": )" +
                           std::to_string(microbatches) + R"(, "language": )" + layout +
                           R"(}, "training": {"precision": "bf16"}})";
  return read_scenario(text, "s.json", test::file_text);
}

HardwareProfile h100_prior() { return *find_profile(default_profile("H100")); }

// Another machine, another driver, another attention kernel.
HardwareProfile planted() {
  HardwareProfile truth = h100_prior();
  for (const auto& [key, factor] : {std::pair{"gemm_efficiency", 0.85},
                                    {"attention_efficiency", 0.7},
                                    {"attention_backward", 1.25},
                                    {"memory_efficiency", 0.8},
                                    {"optimizer_bytes_efficiency", 0.9}})
    scale_parameter(truth, key, factor);
  return truth;
}

// Profiles of some ranks of a run whose kernels take as long as `truth` says.
StepEvidence profiled(const Scenario& scenario, const HardwareProfile& truth,
                      const std::vector<std::uint32_t>& ranks, bool shapes = true) {
  const Prediction run = quick_step(scenario, truth);
  // Only representative ranks have ops: a rank stands for all of its stage.
  std::vector<traces::DeviceTrace> traces;
  for (const std::uint32_t rank : ranks) {
    const std::string text =
        MadeProfile(run.program, Rank(rank), truth, shapes).text(2, run.step());
    traces.push_back(traces::made::read(text, "rank-" + std::to_string(rank) + ".json"));
  }
  return evidence_of_profiles(traces, scenario, h100_prior());
}

double error_of(const StepCalibration& fit, const Scenario& scenario,
                const HardwareProfile& truth) {
  return std::log(quick_step(scenario, fit.profile).step() / quick_step(scenario, truth).step());
}

}  // namespace

TEST_CASE("planted efficiencies are recovered within 2 %, and other layouts predicted with them") {
  const Scenario seen = llama_laid_out(R"({"tp": 2, "pp": 2})");
  const HardwareProfile truth = planted();
  for (const bool shapes : {true, false}) {
    CAPTURE(shapes);
    StepEvidence evidence = profiled(seen, truth, {0, 2}, shapes);
    CHECK(evidence.notes.size() == (shapes ? 0 : 1));
    REQUIRE(evidence.step);
    const StepCalibration fit = calibrate_steps(h100_prior(), {evidence}, "ours");
    REQUIRE(fit.kernels.size() == 5);
    for (const KernelFitRow& row : fit.kernels) {
      CAPTURE(row.kernels);
      CHECK_FALSE(row.outlier);
      CHECK(row.after / row.measured == doctest::Approx(1).epsilon(0.01));
    }
    for (const char* key : {"gemm_efficiency", "attention_efficiency", "attention_backward",
                            "optimizer_bytes_efficiency"}) {
      CAPTURE(key);
      CHECK(parameter(fit.profile, key) / parameter(truth, key) ==
            doctest::Approx(1).epsilon(0.02));
    }
    // Kernels do not tell the rate of the memory from the traffic of the stack.
    CHECK(fit.profile.memory_efficiency / fit.profile.stack.traffic / truth.memory_efficiency ==
          doctest::Approx(1).epsilon(0.02));
    const auto left = parameter_deviations(fit.profile.certainty);
    CHECK(left.at("gemm_efficiency") < 0.03);
    CHECK(left.at("attention_backward") < 0.05);
    for (const char* layout : {R"({"tp": 1, "pp": 4})", R"({"tp": 4, "pp": 1, "sp": true})",
                               R"({"tp": 1, "pp": 1, "recompute": "full"})"}) {
      CAPTURE(layout);
      CHECK(std::abs(error_of(fit, llama_laid_out(layout), truth)) < 0.02);
    }
    // The profile's file can be read.
    const HardwareProfile back = parse_profile(readable_json(fit.profile, "out"), "out");
    CHECK(back.certainty == fit.profile.certainty);
    CHECK(back.attention_backward == doctest::Approx(fit.profile.attention_backward));
  }
}

TEST_CASE("without shapes and ranks of their own, a profile is of a rank of its stage") {
  const HardwareProfile truth = planted();
  const Scenario seen =
      llama_laid_out(R"({"tp": 1, "pp": 2})");  // two replicas: folded to ranks 0 and 2
  const Prediction run = quick_step(seen, truth);
  for (const std::uint32_t rank : {1u, 3u}) {
    CAPTURE(rank);
    std::string text =
        MadeProfile(run.program, Rank(rank / 2 * 2), truth, false).text(2, run.step());
    const std::string was = "\"rank\": " + std::to_string(rank / 2 * 2);
    text.replace(text.find(was), was.size(), "\"rank\": " + std::to_string(rank));
    const StepEvidence evidence =
        evidence_of_profiles({traces::made::read(text)}, seen, h100_prior());
    const StepCalibration fit = calibrate_steps(h100_prior(), {evidence}, "ours");
    for (const KernelFitRow& row : fit.kernels) {
      CAPTURE(row.kernels);
      CHECK(row.after / row.measured == doctest::Approx(1).epsilon(0.01));
    }
    CHECK(fit.profile.gemm_efficiency == doctest::Approx(truth.gemm_efficiency).epsilon(0.02));
  }
}

TEST_CASE("kernels that are not predicted make no rows, and shares are of all ranks") {
  const HardwareProfile truth = planted();
  const Scenario seen = llama_laid_out(R"({"tp": 2, "pp": 2})");
  StepEvidence evidence = profiled(seen, truth, {0, 2});
  KernelRows rows(evidence, h100_prior());
  const auto attention =
      std::find_if(rows.rows().begin(), rows.rows().end(),
                   [](const KernelRow& row) { return row.name == "attention backward"; });
  REQUIRE(attention != rows.rows().end());
  CHECK(attention->longest_share == doctest::Approx(1));
  for (traces::DeviceEvidence& trace : evidence.kernels)
    trace.groups[place(KernelGroup::grouped_gemm)].time = Seconds(1);
  CHECK(KernelRows(evidence, h100_prior()).rows().size() == rows.rows().size());
}

TEST_CASE("a profile of another batch gives the rates of its GEMMs only, and says so") {
  const HardwareProfile truth = planted();
  const Scenario seen = llama_laid_out(R"({"tp": 2, "pp": 2})"),
                 other = llama_laid_out(R"({"tp": 1, "pp": 4})");
  StepEvidence evidence = profiled(seen, truth, {0});
  evidence = [&] {
    const Prediction run = quick_step(seen, truth);
    const std::string text = MadeProfile(run.program, Rank(0), truth, true).text(2, run.step());
    return evidence_of_profiles({traces::made::read(text)}, other, h100_prior());
  }();
  REQUIRE(evidence.notes.size() == 1);
  CHECK(evidence.notes[0].find("times the FLOPs of s.json") != std::string::npos);
  CHECK_FALSE(evidence.step);
  const StepCalibration fit = calibrate_steps(h100_prior(), {evidence}, "ours");
  REQUIRE(fit.kernels.size() == 1);
  CHECK(fit.kernels[0].kernels == "GEMMs");
  CHECK(fit.profile.gemm_efficiency == doctest::Approx(truth.gemm_efficiency).epsilon(0.02));
  CHECK(fit.profile.attention_efficiency == h100_prior().attention_efficiency);
}

}  // namespace polyphony::tests
