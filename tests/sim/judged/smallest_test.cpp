// Calibration with one step time of a family and its effect on the others, by hand.
#include "sim/judged/smallest.h"

#include <doctest/doctest.h>

#include <cmath>

namespace polyphony::sim {
namespace {

RowResult row(const std::string& id, int gpus, double gemm, double memory) {
  RowResult result;
  result.row.id = result.row.model = id;
  result.row.block = "a";
  result.row.family = "f";
  result.row.gpus = gpus;
  result.error = 0;
  result.certainty.errors = {{{"gemm_efficiency", 0.1}}, {{"memory_efficiency", 0.2}}};
  result.belief = Belief{Seconds(1), {gemm, memory}, 0.03, 0};
  return result;
}

}  // namespace

// Effects 0.04 and 0.02 of one error, own 0.03, the number itself 0.01: z = 0.04 · (-0.05) /
// (0.0016 + 0.0009 + 0.0001) = -0.7692, which moves the other row by -0.01538. What is left of the
// error: 1 - 0.0016 / 0.0026 = 0.3846 of its variance.
TEST_CASE("the smallest run of a family corrects the others by their common errors") {
  HeldOut held;
  held.widths = Widths{0.03, 0.08, 0.2, 0.2, 0.05, 0.05, 0.3};
  held.unseen["family_out"] = {{"a_8", 0.05}, {"a_512", 0.03}};
  const std::vector<SmallestFit> fits =
      fit_smallest({row("a_512", 512, 0.02, 0), row("a_8", 8, 0.04, 0)}, held);
  REQUIRE(fits.size() == 2);
  CHECK(fits[0].block == "a");
  CHECK(fits[1].block.empty());
  CHECK(fits[0].evidence == 1);
  CHECK(fits[0].outliers == 0);
  CHECK(fits[0].rows == 1);
  CHECK(fits[0].before.mean == doctest::Approx(0.03));
  CHECK(fits[0].after.mean == doctest::Approx(0.03 - 0.02 * 0.002 / 0.0026));
  CHECK(fits[0].before.half_width == doctest::Approx(1.64485 * std::hypot(0.02, 0.03)));
  CHECK(fits[0].after.half_width ==
        doctest::Approx(1.64485 * std::sqrt(0.0004 * (1 - 0.0016 / 0.0026) + 0.0009)));
  CHECK(fits[0].after.inside == 1);
}

// As above, but both runs are of one model and layout. Of the evidence's -0.05 the error explains
// -0.7692 · 0.04; the rest, -0.01923, counts by 0.0009 / 0.0010: the other row moves by another
// -0.01731. Its effect of 0.02 is known by 0.9 · 0.04, and of the residual a tenth is left.
TEST_CASE("what the common errors do not explain corrects runs of the same layout") {
  HeldOut held;
  held.widths = Widths{0.03, 0.08, 0.2, 0.2, 0.05, 0.05, 0.3};
  held.unseen["family_out"] = {{"a_8", 0.05}, {"a_512", 0.03}};
  RowResult large = row("a_512", 512, 0.02, 0), small = row("a_8", 8, 0.04, 0);
  large.row.model = small.row.model = "one";
  const std::vector<SmallestFit> fits = fit_smallest({large, small}, held);
  REQUIRE(fits.size() == 2);
  const double z = -0.002 / 0.0026, left = 1 - 0.0016 / 0.0026;
  CHECK(fits[0].after.mean ==
        doctest::Approx(std::abs(0.03 + 0.02 * z + 0.9 * (-0.05 - 0.04 * z))));
  CHECK(fits[0].after.half_width ==
        doctest::Approx(1.64485 * std::sqrt(0.016 * 0.016 * left + 0.00009)));
}

// A borrowed device: 0.2² - 0.03² = 0.0391 are its kernels'; slopes of the evidence 0.04 / 0.1 and
// 0.06 / 0.2: s² = 0.0391 / (0.16 + 0.09) = 0.1564. Errors grow to √(0.01 + 0.1564) and √(0.04 +
// 0.1564): the evidence's effects to 0.4 · 0.40792 = 0.16317 and 0.3 · 0.44317 = 0.13295, 0.0443 in
// all; those of the other, all products, to 1.0 · 0.40792. z of products = 0.16317 · 0.3 / (0.0443
// + 0.001).
TEST_CASE("the residual of a borrowed device is attributed to its kernels and mostly removed") {
  HeldOut held;
  held.widths = Widths{0.03, 0.08, 0.2, 0.2, 0.05, 0.05, 0.3};
  held.unseen["device_out"] = {{"a_8", -0.3}, {"a_16", -0.36}};
  const std::vector<SmallestFit> fits =
      fit_smallest({row("a_8", 8, 0.04, 0.06), row("a_16", 16, 0.1, 0)}, held);
  const double s = 0.0391 / 0.25, products = 0.4 * std::sqrt(0.01 + s),
               memory = 0.3 * std::sqrt(0.04 + s);
  const double z = products * 0.3 / (products * products + memory * memory + 0.001);
  REQUIRE(fits.size() == 2);
  CHECK(fits[0].footing == Footing::borrowed);
  CHECK(fits[0].after.mean == doctest::Approx(std::abs(-0.36 + std::sqrt(0.01 + s) * z)));
}

// If several rows of a family have the smallest number of devices, each is used as evidence in
// turn, and each predicted row counts once.
TEST_CASE("several smallest runs are each used as evidence, and each row counts once") {
  HeldOut held;
  held.widths = Widths{0.03, 0.08, 0.2, 0.2, 0.05, 0.05, 0.3};
  held.unseen["stack_out"] = {{"a_1", 0.1}, {"a_2", -0.1}, {"a_3", 2}};
  RowResult lone = row("a_4", 8, 0.04, 0);
  lone.row.family = "alone";
  held.unseen["stack_out"]["a_4"] = 1;
  const std::vector<SmallestFit> fits = fit_smallest(
      {row("a_1", 8, 0.04, 0), row("a_2", 8, 0.04, 0), row("a_3", 16, 0.04, 0), lone}, held);
  REQUIRE(fits.size() == 2);
  CHECK(fits[0].families == 1);
  CHECK(fits[0].evidence == 2);
  CHECK(fits[0].rows == doctest::Approx(2));
  // Of each evidence the other one and the third: (0.1 + 2 + 0.1 + 2) / 4.
  CHECK(fits[0].before.mean == doctest::Approx(1.05));
  CHECK(fits[0].before.inside == doctest::Approx(0.5));
}

}  // namespace polyphony::sim
