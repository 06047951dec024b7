// A profile checked against steps that it predicts, and against others.
#include "sim/evidence/profile_check.h"

#include <doctest/doctest.h>

#include "shared/error.h"
#include "shared/hardware/devices.h"
#include "sim/evidence/quick_step.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {
namespace {

using namespace sim;

HardwareProfile profile() { return *find_profile(default_profile("H100")); }

// `times`: measured over predicted.
StepEvidence evidence(double times) {
  StepEvidence one;
  one.source = "made";
  one.scenario = read_scenario(R"({"polyphony": 1,
    "model": {"language": {"preset": "llama-3.1-8b", "layers": 4}},
    "cluster": {"node": {"device": "H100", "ranks": 8}},
    "data": {"source": "synthetic", "text": {"tokens": 4096}, "sequence": 4096, "global_batch": 32},
    "layout": {"placement": "homogeneous", "microbatches": 8, "language": {"tp": 2, "pp": 2}},
    "training": {"precision": "bf16"}})",
                               "s.json", test::file_text);
  one.step = times * quick_step(one.scenario, profile()).step();
  return one;
}

}  // namespace

TEST_CASE("a step as predicted is inside, one of ten times that is beyond all stated errors") {
  const ProfileCheck check = check_profile(profile(), {evidence(1), evidence(10)});
  REQUIRE(check.steps.size() == 2);
  CHECK(check.steps[0].inside);
  CHECK_FALSE(check.steps[0].beyond);
  CHECK(check.steps[0].predicted / check.steps[0].measured == doctest::Approx(1));
  CHECK_FALSE(check.steps[1].inside);
  CHECK(check.steps[1].beyond);
  CHECK_FALSE(check.passed());
  CHECK(check_profile(profile(), {evidence(1)}).passed());
}

TEST_CASE("memory is compared and not judged") {
  StepEvidence one = evidence(1);
  one.step.reset();
  one.reserved = Bytes(1);
  const ProfileCheck check = check_profile(profile(), {one});
  CHECK(check.steps.empty());
  REQUIRE(check.memory.size() == 1);
  CHECK(check.memory[0].reserved);
  CHECK(check.memory[0].predicted == most_memory(quick_step(one.scenario, profile())));
  CHECK(check.passed());
}

TEST_CASE("evidence of another device is refused, and an implausible number is named") {
  HardwareProfile other = *find_profile(default_profile("A100-80"));
  CHECK_THROWS_AS(check_profile(other, {evidence(1)}), InputError);
  HardwareProfile slow = profile();
  slow.gemm_efficiency = 0.001;
  CHECK_FALSE(check_profile(slow, {}).implausible.empty());
  CHECK_FALSE(check_profile(slow, {}).passed());
}

}  // namespace polyphony::tests
