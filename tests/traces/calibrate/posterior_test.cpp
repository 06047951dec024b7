#include "traces/calibrate/posterior.h"

#include <doctest/doctest.h>

#include <cmath>

#include "shared/statistics.h"

namespace polyphony::traces {

TEST_CASE("one row moves the errors that it depends on, in proportion") {
  // Effects 0.03 and 0.04, own 0.05: the parameters contribute 0.0025 to the variance of the
  // surprise, and its own part the same. z = effect · surprise / 0.005: 0.6 and 0.8 for a surprise
  // of 0.1; half of it is explained.
  const PosteriorFit fit = fit_posterior({{0.1, {0.03, 0.04, 0}, 0.05}}, 3, 0);
  const Posterior& posterior = fit.posterior;
  CHECK(posterior.mean[0] == doctest::Approx(0.6));
  CHECK(posterior.mean[1] == doctest::Approx(0.8));
  CHECK(posterior.mean[2] == 0);
  CHECK(posterior.shift({0.03, 0.04, 0}) == doctest::Approx(0.05));
  // Variances: 1 - 0.03² / 0.005 = 0.82, 1 - 0.04² / 0.005 = 0.68, covariance -0.0012 / 0.005; the
  // third is unchanged.
  CHECK(posterior.covariance[0] == doctest::Approx(0.82));
  CHECK(posterior.covariance[4] == doctest::Approx(0.68));
  CHECK(posterior.covariance[1] == doctest::Approx(-0.24));
  CHECK(posterior.covariance[8] == 1);
  // 0.0025 · (1 - 0.0025 / 0.005)
  CHECK(posterior.deviation({0.03, 0.04, 0}) == doctest::Approx(std::sqrt(0.00125)));
  // No other row informs this one: its miss is its whole surprise, with deviation √0.005.
  CHECK(fit.unseen[0].miss == doctest::Approx(0.1));
  CHECK(fit.unseen[0].deviation == doctest::Approx(std::sqrt(0.005)));
  CHECK_FALSE(fit.unseen[0].outlier);
}

TEST_CASE(
    "many rows recover the parameters; a row that is wrong by a factor of ten is an outlier "
    "without effect") {
  std::vector<SurpriseRow> rows;
  for (int i = 0; i < 12; ++i) {
    const double x = 0.02 + 0.005 * i;
    rows.push_back({1.5 * x - 0.5 * 0.03, {x, 0.03}, 0.001});
  }
  const PosteriorFit clean = fit_posterior(rows, 2, 5);
  CHECK(clean.posterior.mean[0] == doctest::Approx(1.5).epsilon(0.01));
  CHECK(clean.posterior.mean[1] == doctest::Approx(-0.5).epsilon(0.02));
  for (const UnseenRow& row : clean.unseen) CHECK_FALSE(row.outlier);
  rows[5].surprise += std::log(10);
  const PosteriorFit fit = fit_posterior(rows, 2, 5);
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(fit.unseen[i].outlier == (i == 5));
  CHECK(fit.posterior.mean[0] == doctest::Approx(1.5).epsilon(0.01));
  CHECK(fit.unseen[5].miss == doctest::Approx(std::log(10)).epsilon(0.01));
}

TEST_CASE("rows outside the stated 90 % do not pull harder the further away they are") {
  // Normal distribution: c = 1.645. Beyond it the pull is effect · c / own for any surprise: z =
  // 0.04 · 1.645 / 0.05 = 1.316 as soon as (surprise - 0.04 z) / 0.05 > c, which is from a surprise
  // of 0.135 on. Out to 3.29 · √(0.04² + 0.05²) = 0.211 the row is no outlier.
  const double z = 0.04 * central(0.9, 0) / 0.05;
  for (const double surprise : {0.15, 0.2})
    CHECK(fit_posterior({{surprise, {0.04}, 0.05}}, 1, 0).posterior.mean[0] ==
          doctest::Approx(z).epsilon(1e-6));
  const PosteriorFit lost = fit_posterior({{0.22, {0.04}, 0.05}}, 1, 0);
  CHECK(lost.unseen[0].outlier);
  CHECK(lost.posterior.mean[0] == 0);
  CHECK(lost.posterior.covariance[0] == 1);
}

TEST_CASE("errors stay within bounds, and the free errors explain the rest of a surprise") {
  // Two equal effects of 0.05 and almost no noise: each explains 0.5 of a surprise of 0.05. If one
  // is fixed at 0.2, the other explains the rest, reduced by its own prior: 0.8 minus own² / 0.05²
  // = 4 %.
  const ZBounds bounds{{-10, -10}, {0.2, 10}};
  const PosteriorFit fit = fit_posterior({{0.05, {0.05, 0.05}, 0.01}}, 2, 0, bounds);
  CHECK(fit.posterior.mean[0] == 0.2);
  CHECK(fit.posterior.mean[1] == doctest::Approx(0.8 / 1.04));
}

TEST_CASE("independent_ways() is a factor of the covariance") {
  const std::vector<double> covariance = {0.82, -0.24, -0.24, 0.68};
  const std::vector<double> ways = independent_ways(covariance);
  // √0.82; -0.24 / √0.82; √(0.68 - 0.24² / 0.82).
  CHECK(ways[0] == doctest::Approx(std::sqrt(0.82)));
  CHECK(ways[1] == 0);
  CHECK(ways[2] == doctest::Approx(-0.24 / std::sqrt(0.82)));
  CHECK(ways[3] == doctest::Approx(std::sqrt(0.68 - 0.24 * 0.24 / 0.82)));
}

TEST_CASE("without evidence nothing changes") {
  const PosteriorFit fit = fit_posterior({}, 2, 5);
  CHECK(fit.posterior.mean == std::vector<double>{0, 0});
  CHECK(fit.posterior.covariance == std::vector<double>{1, 0, 0, 1});
}

}  // namespace polyphony::traces
