#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "traces/calibrate/fit.h"

using namespace polyphony::traces;

namespace {

FitRow line(double x, double y) { return {y, 0, {{0, 1, 0}, {1, x, 0}}}; }

}  // namespace

// y = 2 + 3x exactly.
TEST_CASE("a line is fitted to exact points") {
  FitProblem problem{
      {{1, 10, 0}, {1, 10, 0}}, {line(1, 5), line(2, 8), line(10, 32)}, std::nullopt, 1e-6};
  const traces::Fit result = fit(problem);
  CHECK(result.value[0] == doctest::Approx(2).epsilon(1e-9));
  CHECK(result.value[1] == doctest::Approx(3).epsilon(1e-9));
  CHECK(result.noise < 1e-9);
  CHECK(result.rows == std::vector<std::size_t>{3, 3});
  CHECK(predict(problem.rows[2], result.value, std::nullopt) == doctest::Approx(32));
}

TEST_CASE("one outlier in twenty does not move it") {
  FitProblem problem{{{1, 10, 0}, {1, 10, 0}}, {}, std::nullopt, 1e-6};
  for (int x = 1; x <= 20; ++x)
    problem.rows.push_back(line(x, (2.0 + 3.0 * x) * (x % 2 == 0 ? 1.001 : 0.999)));
  problem.rows[7].measured *= 50;
  const traces::Fit result = fit(problem);
  CHECK(result.value[0] == doctest::Approx(2).epsilon(0.02));
  CHECK(result.value[1] == doctest::Approx(3).epsilon(0.005));
}

// y = 5 - x needs a negative slope: the bound keeps it at 0, and the intercept minimizes relative
// errors.
TEST_CASE("parameters stay within their bounds") {
  FitProblem problem{
      {{1, 10, 0}, {1, 10, 0}}, {line(1, 4), line(2, 3), line(3, 2)}, std::nullopt, 1e-6};
  const traces::Fit result = fit(problem);
  CHECK(result.value[1] == 0);
  CHECK(result.value[0] > 2);
  CHECK(result.value[0] < 4);
}

// y = 0, so the slope is at its bound of 1/4, for any deviation (dividing the bound by it rounds).
// The fitted value is the prior of the next fit.
TEST_CASE("a fitted value at its bound is a valid prior of the next fit") {
  for (int i = 1; i <= 100; ++i) {
    const double deviation = 0.7 * i + 0.00449;
    FitProblem problem{{{1, deviation, 0.25}}, {}, std::nullopt, 1e-6};
    for (int x = 1; x <= 3; ++x) problem.rows.push_back({0, 0, {{0, double(x), 0}}});
    const traces::Fit first = fit(problem);
    CHECK(first.value[0] == 0.25);
    problem.parameters[0].prior = first.value[0];
    CHECK(fit(problem).value[0] == 0.25);
  }
}

// Only θ0 + θ1 = 10 is known, priors 1 ± 3 and 1 ± 1: the surplus of 8 is divided in the ratio of
// the variances, 9 to 1.
TEST_CASE("directions without data follow the priors") {
  FitProblem problem{
      {{1, 3, 0}, {1, 1, 0}, {7, 2, 0}}, {{10, 0, {{0, 1, 0}, {1, 1, 0}}}}, std::nullopt, 1e-6};
  const traces::Fit result = fit(problem);
  CHECK(result.value[0] == doctest::Approx(1 + 8 * 0.9).epsilon(1e-6));
  CHECK(result.value[1] == doctest::Approx(1 + 8 * 0.1).epsilon(1e-6));
  CHECK(result.value[2] == 7);
  CHECK(result.standard_error[2] == doctest::Approx(2));
  CHECK(result.rows[2] == 0);
}

// y_i = a (t_i + d l_i) with a = 1.5, d = 4.
TEST_CASE("a product of two parameters is fitted") {
  FitProblem problem{{{1, 3, 0}, {1, 10, 0}}, {}, 1, 1e-6};
  const double t[] = {1, 5, 20, 100};
  const double l[] = {10, 10, 20, 5};
  for (int i = 0; i < 4; ++i)
    problem.rows.push_back({1.5 * (t[i] + 4 * l[i]), 0, {{0, t[i], l[i]}}});
  const traces::Fit result = fit(problem);
  CHECK(result.value[0] == doctest::Approx(1.5).epsilon(1e-8));
  CHECK(result.value[1] == doctest::Approx(4).epsilon(1e-8));
}

TEST_CASE("standard errors cover the truth") {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(0, 0.05);
  int covered = 0;
  for (int repeat = 0; repeat < 200; ++repeat) {
    FitProblem problem{{{1, 30, 0}, {1, 30, 0}}, {}, std::nullopt, 1e-6};
    for (int x = 1; x <= 40; ++x)
      problem.rows.push_back(line(x, (20.0 + 3.0 * x) * (1 + normal(random))));
    const traces::Fit result = fit(problem);
    covered += std::abs(result.value[1] - 3) < 2 * result.standard_error[1] ? 1 : 0;
  }
  CHECK(covered >= 180);  // 95 % of 200, minus three deviations of that count
}
