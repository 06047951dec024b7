// Intervals and probabilities compared with measurements, by hand.
#include <doctest/doctest.h>

#include <cmath>

#include "shared/hardware/shipped_certainty.h"
#include "sim/judged/coverage.h"
#include "sim/judged/reliability.h"

namespace polyphony::sim {
namespace {

Claim claim(const std::string& block, Footing footing, double error) {
  return {"", block, footing, error, 0.1, 0, 0.2};
}

RowResult row(const std::string& id, double error, double measured, double gemm, double experts) {
  RowResult result;
  result.row.id = id;
  result.row.block = id.substr(0, id.find('_'));
  result.row.family = "f";
  result.error = error;
  result.measured_step = Seconds(measured);
  result.step = result.measured_step * (1 + error);
  result.certainty.errors = {{{"gemm_efficiency", 0.1}}, {{"grouped_efficiency", 0.2}}};
  result.certainty.footing = Footing::foreign;
  result.certainty.residual = 0.04;
  result.certainty.layout_error = 0.05;
  result.belief = Belief{result.step, {gemm, experts}, 0.04, 0};
  result.layout.modules.resize(1);
  return result;
}

HeldOut held_out() {
  HeldOut held;
  held.widths = Widths{0.04, 0.09, 0.21, 0.4, 0.05, 0.05, 0.3};
  held.without_block["a"] = Widths{0.06, 0.08, 0.21, 0.1, 0.05, 0.05, 0.25};
  held.unseen["family_out"] = {{"a_1", 0.07}};
  held.unseen["stack_out"] = {{"a_1", -0.2}};
  return held;
}

}  // namespace

// Normal quantiles 0.6745, 1.2816, 1.6449 of a scale of 0.1: of errors 0.05, -0.1, 0.15, 0.2 they
// hold 1, 2 and 3. One of four at a half: 1 - 6/16. The score: 0.32897 wide, and 20 · 0.03551 of
// the last; of one width of 0.2, 0.65794 wide, nothing outside.
TEST_CASE("coverage, its p-value and its score") {
  std::vector<Claim> claims;
  for (const double error : {0.05, -0.1, 0.15, 0.2})
    claims.push_back(claim("a", Footing::known, error));
  const std::vector<Coverage> alone = coverage(claims);
  REQUIRE(alone.size() == 2);  // of the block, of the footing
  const Coverage& c = alone[0];
  CHECK(c.block == "a");
  CHECK(c.inside == std::array<std::size_t, 3>{1, 2, 3});
  CHECK(c.chance[0] == doctest::Approx(0.625));
  CHECK(c.half_width == doctest::Approx(0.164485).epsilon(1e-4));
  CHECK(c.median == doctest::Approx(0.125));
  CHECK(c.score == doctest::Approx(0.328971 + 20 * 0.035515 / 4).epsilon(1e-4));
  CHECK(*c.one_width_score == doctest::Approx(0.657941).epsilon(1e-4));
  claims.push_back(claim("a", Footing::foreign, 1));
  const std::vector<Coverage> both = coverage(claims);
  REQUIRE(both.size() == 5);  // two blocks, two footings, all
  CHECK_FALSE(both.back().footing);
  CHECK(both.back().rows == 5);
  CHECK(both.back().inside[2] == 3);
}

TEST_CASE("interval score: the width, plus 20 times the distance outside") {
  CHECK(interval_score(-1, 2, 0) == doctest::Approx(3));
  CHECK(interval_score(-1, 2, 2.5) == doctest::Approx(3 + 20 * 0.5));
  CHECK(interval_score(-1, 2, -1.25) == doctest::Approx(3 + 20 * 0.25));
}

// √(0.06² + 0.03² + (0.02 · 0.1 / 0.2)²) without the block, known; its residual 0.08 where foreign.
TEST_CASE(
    "a row is evaluated once per fold that excluded it, with widths fitted without its block") {
  const std::vector<RowResult> rows{row("a_1", 0.5, 1, 0.03, 0.02), row("b_1", 0.1, 1, 0.03, 0)};
  const std::vector<Claim> claims = claims_of(rows, held_out());
  REQUIRE(claims.size() == 3);
  CHECK(claims[0].footing == Footing::known);
  CHECK(claims[0].error == 0.07);
  CHECK(claims[0].scale == doctest::Approx(std::sqrt(0.0036 + 0.0009 + 0.0001)));
  CHECK(*claims[0].one_width == 0.25);
  CHECK(claims[1].footing == Footing::foreign);
  CHECK(claims[1].error == -0.2);
  CHECK(claims[1].scale == doctest::Approx(std::sqrt(0.0064 + 0.0009 + 0.0001)));
  // No fold excluded it: its own error, the calibration basis of its profile, the widths of all
  // rows.
  CHECK(claims[2].footing == Footing::foreign);
  CHECK(claims[2].error == doctest::Approx(std::log(1.1)));
  CHECK(claims[2].scale == doctest::Approx(std::sqrt(0.0081 + 0.0009)));
  // Without held-out errors: the profile's own deviation.
  const std::vector<Claim> plain = claims_of({rows[1]}, std::nullopt);
  CHECK(plain[0].scale == doctest::Approx(0.05));
  CHECK_FALSE(plain[0].one_width);
}

// Measured 1 and e^0.1, predicted e^0.2 and e^0.1·e^-0.05: the second is said to be faster by 0.15,
// and is slower. Their effects differ by 0.03, the layouts by one doubling, 0.04: 0.15 are three
// deviations. The difference misses by 0.25, five deviations.
TEST_CASE("a pair: stated probability and outcome") {
  RowResult first = row("b_1", std::expm1(0.2), 1, 0.05, 0);
  RowResult second = row("b_2", std::expm1(-0.05), std::exp(0.1), 0.02, 0);
  first.certainty.layout_error = 0.04;
  second.layout.modules[0].cp = 2;
  second.layout.modules[0].ranks = 2;  // dp 1
  first.layout.modules[0].ranks = 1;
  const std::vector<JudgedPair> pairs = judge_pairs({first, second}, std::nullopt);
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].stated == doctest::Approx(0.9986501));
  CHECK_FALSE(pairs[0].happened);
  CHECK_FALSE(pairs[0].tied);
  CHECK(pairs[0].inside == std::array<bool, 3>{false, false, false});
  second.row.family = "another question";
  CHECK(judge_pairs({first, second}, std::nullopt).empty());
}

TEST_CASE("reliability: mean stated probability and observed share per bin") {
  const std::vector<JudgedPair> pairs{{"a", 0.5, true, true, {}},
                                      {"a", 0.58, false, true, {}},
                                      {"a", 0.6, true, true, {}},
                                      {"a", 0.97, true, false, {}},
                                      {"a", 1.0, false, false, {}}};
  const std::vector<ReliabilityBin> bins = reliability(pairs);
  REQUIRE(bins.size() == 3);
  CHECK(bins[0].pairs == 2);
  CHECK(bins[0].stated == doctest::Approx(0.54));
  CHECK(bins[0].happened == 0.5);
  CHECK(bins[1].low == 0.6);
  CHECK(bins[1].happened == 1);
  CHECK(bins[2].high == 1);
  CHECK(bins[2].pairs == 2);
  CHECK(bins[2].stated == doctest::Approx(0.985));
}

}  // namespace polyphony::sim
