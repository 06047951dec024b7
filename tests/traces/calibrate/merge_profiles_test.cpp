#include "traces/calibrate/merge_profiles.h"

#include <doctest/doctest.h>

#include <cmath>

#include "shared/error.h"

namespace polyphony::traces {
namespace {

HardwareProfile profile(double gemm, std::vector<ParameterError> errors) {
  HardwareProfile result;
  result.name = "p";
  result.gemm_efficiency = gemm;
  result.certainty.errors = std::move(errors);
  result.certainty.residual = 0.05;
  return result;
}

double deviation(const HardwareProfile& merged, const std::string& key) {
  double squares = 0;
  for (const ParameterError& error : merged.certainty.errors)
    if (const auto found = error.find(key); found != error.end())
      squares += found->second * found->second;
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE(
    "parameters of both profiles are weighted by precision; a parameter of one profile is taken "
    "from it") {
  // Deviations 0.1 and 0.05: weights 100 and 400. ln = (100 ln 0.5 + 400 ln 0.6) / 500; the
  // remaining deviation is 1 / √500.
  HardwareProfile b = profile(0.6, {{{"gemm_efficiency", 0.05}}, {{"dispatch", 0.3}}});
  b.dispatch = Seconds(4e-6);
  HardwareProfile a = profile(0.5, {{{"gemm_efficiency", 0.1}}});
  a.dispatch = Seconds(2e-6);
  const HardwareProfile merged = merge_profiles(a, b, std::nullopt, "both");
  CHECK(merged.name == "both");
  CHECK(merged.gemm_efficiency ==
        doctest::Approx(std::exp((100 * std::log(0.5) + 400 * std::log(0.6)) / 500)));
  CHECK(deviation(merged, "gemm_efficiency") == doctest::Approx(1 / std::sqrt(500)).epsilon(1e-4));
  CHECK(merged.dispatch.count() == doctest::Approx(4e-6));
  CHECK(deviation(merged, "dispatch") == doctest::Approx(0.3).epsilon(1e-4));
}

TEST_CASE("a common origin of both profiles counts once") {
  // Origin 0.1; each has additional evidence with a deviation of 0.1, so precision 200: Λ = 200 +
  // 200 - 100.
  const double half = std::sqrt(1 / 200.0);
  const HardwareProfile origin = profile(0.5, {{{"gemm_efficiency", 0.1}}}),
                        a = profile(0.55, {{{"gemm_efficiency", half}}}),
                        b = profile(0.45, {{{"gemm_efficiency", half}}});
  const HardwareProfile merged = merge_profiles(a, b, origin, "both");
  CHECK(deviation(merged, "gemm_efficiency") == doctest::Approx(1 / std::sqrt(300)).epsilon(1e-4));
  CHECK(merged.gemm_efficiency ==
        doctest::Approx(
            std::exp((200 * std::log(0.55) + 200 * std::log(0.45) - 100 * std::log(0.5)) / 300)));
  CHECK_THROWS_AS(merge_profiles(a, b, profile(0.5, {{{"gemm_efficiency", 0.01}}}), "both"),
                  InputError);
}

TEST_CASE("correlated parameters move together") {
  // Only the sum of both logarithms is known to 0.01, each of them to 0.1: merging with a profile
  // that states the second one moves the first in the opposite direction.
  const double r = std::sqrt(0.5);
  HardwareProfile a =
      profile(0.5, {{{"gemm_efficiency", 0.1 * r}, {"memory_efficiency", -0.1 * r}},
                    {{"gemm_efficiency", 0.01 * r}, {"memory_efficiency", 0.01 * r}}});
  HardwareProfile b = profile(0.5, {{{"memory_efficiency", 0.001}}});
  b.memory_efficiency = a.memory_efficiency * 1.05;
  const HardwareProfile merged = merge_profiles(a, b, std::nullopt, "both");
  CHECK(merged.memory_efficiency == doctest::Approx(b.memory_efficiency).epsilon(1e-3));
  // Profile a: covariance of the two -0.00495, variance 0.00505: slope -0.98.
  CHECK(std::log(merged.gemm_efficiency / 0.5) ==
        doctest::Approx(-0.00495 / 0.00505 * std::log(1.05)).epsilon(0.01));
}

TEST_CASE("profiles of two stacks are not merged") {
  HardwareProfile a = profile(0.5, {}), b = profile(0.5, {});
  b.stack.name = "fsdp";
  CHECK_THROWS_WITH_AS(merge_profiles(a, b, std::nullopt, "x"),
                       doctest::Contains("its software stack differs"), InputError);
}

}  // namespace polyphony::traces
