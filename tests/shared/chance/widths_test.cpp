// Student's t, the binomial test, stated residuals, and what a shipped profile's width depends on.
#include <doctest/doctest.h>

#include <cmath>

#include "shared/chance/belief.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/shipped_certainty.h"
#include "shared/statistics.h"

using namespace polyphony;

// Closed forms: f = 1, P(|T| <= 1) = 2 atan(1)/π = 1/2; f = 2, t/√(2 + t²), so that t = √2 holds
// 1/√2. Tables: 0.975 of f = 5 at 2.5706; central 90 % of f = 3 at 2.3534, of f = 10 at 1.8125.
TEST_CASE("Student's t: closed forms and tables") {
  CHECK(student_below(1, 1) == doctest::Approx(0.75));
  CHECK(student_below(-1, 1) == doctest::Approx(0.25));
  CHECK(student_below(std::sqrt(2.0), 2) == doctest::Approx((1 + std::sqrt(0.5)) / 2));
  CHECK(student_below(2.5706, 5) == doctest::Approx(0.975).epsilon(1e-5));
  CHECK(central(0.9, 3) == doctest::Approx(2.3534).epsilon(1e-4));
  CHECK(central(0.9, 10) == doctest::Approx(1.8125).epsilon(1e-4));
  CHECK(central(0.5, 1) == doctest::Approx(1));
  CHECK(central(0.9, 0) == doctest::Approx(kNormal90));
  CHECK(central(0.8, 1000) == doctest::Approx(1.2824).epsilon(1e-4));
}

// Three coins: no heads as unlikely as three, 2/8. 5 of 6 at 1/3: 12/729 + 1/729; 0 of 6, 64/729,
// is likelier.
TEST_CASE("the binomial test adds outcomes that are no likelier than the observed one") {
  CHECK(binomial_test(0, 3, 0.5) == doctest::Approx(0.25));
  CHECK(binomial_test(1, 3, 0.5) == doctest::Approx(1));
  CHECK(binomial_test(5, 6, 1.0 / 3) == doctest::Approx(13.0 / 729));
  CHECK(binomial_test(10, 10, 0.9) == doctest::Approx(0.61258).epsilon(1e-4));  // all but 9
}

TEST_CASE("a stated residual is taken as it is, and intervals are of Student's t") {
  HardwareProfile profile;
  profile.certainty.errors = {{{"dispatch", 0.1}}};
  profile.certainty.residual = 0.04;
  profile.certainty.freedom = 5;
  const Belief belief = make_belief(Seconds(10), {0.03}, profile);
  CHECK(belief.deviation() == doctest::Approx(0.05));
  // Tables: 2.0150 at 90 %, 0.7267 at 50 %.
  CHECK(interval(belief).high.count() == doctest::Approx(10 * std::exp(2.0150 * 0.05)));
  CHECK(interval(belief, 0.5).low.count() == doctest::Approx(10 / std::exp(0.7267 * 0.05)));
}

TEST_CASE("how sure a shipped profile is depends on its stack and its device") {
  HardwareProfile profile = *find_profile("h100-roofline");
  const auto stand = [&](const char* stack) {
    profile.stack = *find_stack(stack);
    state_certainty(profile);
    return profile.certainty.footing;
  };
  CHECK(stand("fsdp") == Footing::known);
  const double known = profile.step_error;
  CHECK(stand("polyphony") == Footing::foreign);
  CHECK(profile.step_error > known);
  profile = *find_profile("h200-roofline");  // H100's peaks, other memory
  CHECK(stand("fsdp") == Footing::known);
  profile = *find_profile("h20-roofline");
  CHECK(stand("fsdp") == Footing::borrowed);
  CHECK(*profile.certainty.residual > *find_profile("h100-roofline")->certainty.residual);
  CHECK(stand("polyphony") == Footing::foreign_borrowed);
  profile.name = "mine";
  profile.certainty = {};
  state_certainty(profile);
  CHECK(profile.certainty == Certainty{});
}
