#include "shared/weights/number_bytes.h"

#include <doctest/doctest.h>

namespace polyphony {

TEST_CASE("weights: every half-precision number survives being widened and narrowed") {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double value = Float16::widen(half), brain = BFloat16::widen(half);
    if (std::isnan(value))
      CHECK(std::isnan(Float16::widen(Float16::narrow(value))));
    else
      REQUIRE(Float16::narrow(value) == half);
    if (std::isnan(brain))
      CHECK(std::isnan(BFloat16::widen(BFloat16::narrow(brain))));
    else
      REQUIRE(BFloat16::narrow(brain) == half);
  }
}

TEST_CASE("weights: numbers are rounded to the nearest, ties to even") {
  CHECK(Float16::widen(0x3C00) == 1.0);
  CHECK(Float16::widen(0x0001) == std::ldexp(1.0, -24));  // the smallest
  CHECK(Float16::narrow(65504) == 0x7BFF);                // the largest
  CHECK(Float16::narrow(65519.9) == 0x7BFF);
  CHECK(Float16::narrow(65520) == 0x7C00);  // infinity
  CHECK(Float16::narrow(-1e9) == 0xFC00);
  CHECK(Float16::narrow(1 + std::ldexp(1.0, -11)) == 0x3C00);      // half-way: to even
  CHECK(Float16::narrow(1 + 3 * std::ldexp(1.0, -11)) == 0x3C02);  // half-way: to even
  CHECK(Float16::narrow(2 - std::ldexp(1.0, -12)) == 0x4000);      // into the next exponent
  CHECK(Float16::narrow(std::ldexp(1.0, -25)) == 0);               // half of the smallest
  CHECK(BFloat16::narrow(1 + std::ldexp(1.0, -8)) == 0x3F80);
  CHECK(BFloat16::narrow(1 + 3 * std::ldexp(1.0, -8)) == 0x3F82);
}

}  // namespace polyphony
