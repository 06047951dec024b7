#include "shared/weights/number_bytes.h"

namespace polyphony {
namespace {

constexpr int kFraction = 10;        // bits
constexpr int kLeastExponent = -14;  // of normal numbers
constexpr double kLargest = 65504;
constexpr std::uint16_t kInfinity = 0x7C00;

}  // namespace

double Float16::widen(Bits bits) {
  const int exponent = bits >> kFraction & 0x1F, fraction = bits & 0x3FF;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1F) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, kLeastExponent - kFraction);
  return sign * std::ldexp(fraction + (1 << kFraction), exponent - 15 - kFraction);
}

Float16::Bits Float16::narrow(double value) {
  const Bits sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<Bits>(sign | kInfinity | 0x200);
  const double size = std::abs(value);
  // Half of the distance to the number that would follow the largest one rounds up to infinity.
  if (size >= kLargest + 16) return static_cast<Bits>(sign | kInfinity);
  int exponent = size == 0 ? kLeastExponent : std::max(std::ilogb(size), kLeastExponent);
  // In units of the last bit; 2¹¹ after rounding up becomes the next exponent by itself.
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(size, kFraction - exponent)));
  return static_cast<Bits>(sign | (((exponent - kLeastExponent) << kFraction) + units));
}

double widen_e4m3(std::uint8_t bits) {
  constexpr int kBits = 3, kBias = 7;  // of the fraction; of the exponent
  const int exponent = bits >> kBits & 0xF, fraction = bits & 0x7;
  const double sign = (bits & 0x80) != 0 ? -1 : 1;
  if ((bits & 0x7F) == 0x7F) return std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - kBias - kBits);
  return sign * std::ldexp(fraction + (1 << kBits), exponent - kBias - kBits);
}

}  // namespace polyphony
