// A profile fitted to tables, runs and step times: what each fit hands to the next.
#include "sim/evidence/fitted_profile.h"

#include <doctest/doctest.h>

#include "shared/hardware/devices.h"
#include "sim/evidence/evidence_json.h"

namespace polyphony::tests {
namespace {

using namespace sim;

HardwareProfile prior() { return *find_profile(default_profile("H100")); }

}  // namespace

TEST_CASE("a table replaces the stated error of the ring that it measured") {
  traces::CollectiveTimes table;
  CHECK(ring_parameter(table) == std::string("collective_efficiency"));
  traces::CollectiveFit fit;
  fit.profile = prior();
  fit.profile.certainty.errors = {{{"collective_efficiency", 0.3}},
                                  {{"fabric_efficiency", 0.2}},
                                  {{"collective_efficiency", 0.1}, {"gemm_efficiency", 0.1}}};
  fit.error_after = 0.05;
  // The common error of two parameters stays.
  CHECK(fitted_rings(fit, table).certainty.errors ==
        std::vector<ParameterError>{{{"fabric_efficiency", 0.2}},
                                    {{"collective_efficiency", 0.1}, {"gemm_efficiency", 0.1}},
                                    {{"collective_efficiency", 0.05}}});
  table.nodes = 2;
  fit.error_after = 0.001;
  CHECK(fitted_rings(fit, table).certainty.errors.back() ==
        ParameterError{{"fabric_efficiency", 0.02}});
}

TEST_CASE("without measurements the profile stays, and its answer has no keys") {
  const FittedProfile fitted = fit_profile(prior(), {}, {}, "ours");
  CHECK(fitted.profile == prior());
  CHECK(to_json(fitted) == nlohmann::json::object());
}

}  // namespace polyphony::tests
