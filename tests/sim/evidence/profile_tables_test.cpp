#include "sim/evidence/profile_tables.h"

#include <doctest/doctest.h>

#include <cmath>

#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "shared/hardware/parameter.h"

namespace polyphony::sim {
namespace {

HardwareProfile h100() { return *find_profile(default_profile("H100")); }

}  // namespace

TEST_CASE("parameters of a profile with their errors, from several independent errors") {
  HardwareProfile profile = h100();
  profile.certainty.errors = {{{"gemm_efficiency", 0.03}, {"dispatch", 0.1}},
                              {{"gemm_efficiency", -0.04}}};
  bool seen = false;
  for (const ShownParameter& p : parameters_of(profile)) {
    if (p.key == "dispatch") CHECK(p.deviation == doctest::Approx(0.1));
    if (p.key == "memory_efficiency") CHECK_FALSE(p.deviation);
    if (p.key != "gemm_efficiency") continue;
    seen = true;
    CHECK(p.value == profile.gemm_efficiency);
    CHECK(*p.deviation == doctest::Approx(0.05));  // √(0.03² + 0.04²)
  }
  CHECK(seen);
  CHECK(shown_json(profile)["parameters"].size() == parameters_of(profile).size());
}

TEST_CASE("differences of profiles, in units of their combined deviation") {
  HardwareProfile first = h100(), second = h100();
  first.certainty.errors = {{{"gemm_efficiency", 0.03}}};
  second.certainty.errors = {{{"gemm_efficiency", 0.04}}};
  second.gemm_efficiency *= std::exp(0.1);
  const std::vector<ParameterDifference> found = differences_of(first, second);
  REQUIRE(found.size() == 1);
  CHECK(found[0].key == "gemm_efficiency");
  CHECK(*found[0].deviations == doctest::Approx(2));  // 0.1 / 0.05
  CHECK(differences_of(first, first).empty());
}

TEST_CASE("shipped profiles are plausible, a wrong digit is not") {
  for (const HardwareProfile& profile : shipped_profiles()) {
    CAPTURE(profile.name);
    CHECK(implausible(profile).empty());
  }
  HardwareProfile slip = h100();
  slip.gemm_efficiency /= 100;
  REQUIRE(implausible(slip).size() == 1);
  CHECK(implausible(slip)[0].starts_with("gemm_efficiency"));
  slip = h100();
  slip.certainty.errors = {{{"dispatch", 2.5}}};
  REQUIRE(implausible(slip).size() == 1);
  CHECK(implausible(slip)[0] == "dispatch has an uncertainty of ±250 %");
}

TEST_CASE("reading a parameter after scaling it gives the scaled value, within its range") {
  HardwareProfile profile = h100();
  profile.stack.host = Seconds(1e-5);
  for (const std::string& key : parameter_keys()) {
    CAPTURE(key);
    const double before = parameter(profile, key);
    HardwareProfile moved = profile;
    scale_parameter(moved, key, 2);
    CHECK(parameter(moved, key) == doctest::Approx(2 * before));
    const ParameterRange range = parameter_range(profile, key);
    CHECK(before >= range.low);
    CHECK(before <= range.high);
  }
}

}  // namespace polyphony::sim
