// Converts numbers between the formats of safetensors files. Without LibTorch, so that folders of
// weights can be checked, read and written by either program.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "shared/error.h"

namespace polyphony {

// Number formats of weights, named as in safetensors files. Each reads from and writes to the bytes
// of one element. Rounding is to the nearest value, ties to even
// (from fp64 to bf16 by way of fp32).
struct Float64 {
  using Bits = double;
  static double widen(Bits bits) { return bits; }
  static Bits narrow(double value) { return value; }
};
struct Float32 {
  using Bits = float;
  static double widen(Bits bits) { return static_cast<double>(bits); }
  static Bits narrow(double value) { return static_cast<float>(value); }
};
struct BFloat16 {
  using Bits = std::uint16_t;
  static double widen(Bits bits) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
  }
  static Bits narrow(double value) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    if (std::isnan(value)) return static_cast<Bits>(bits >> 16 | 0x40);
    return static_cast<Bits>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
};
struct Float16 {  // IEEE 754 binary16: 5 bits of exponent, 10 of fraction
  using Bits = std::uint16_t;
  static double widen(Bits bits);
  static Bits narrow(double value);
};

// Calls `use` with an object of the format's type. The format must be one of is_weight_format().
template <class Use>
decltype(auto) with_format(const std::string& format, Use&& use) {
  if (format == "F64") return std::forward<Use>(use)(Float64{});
  if (format == "F32") return std::forward<Use>(use)(Float32{});
  if (format == "BF16") return std::forward<Use>(use)(BFloat16{});
  POLYPHONY_CHECK(format == "F16", format << " is not a format of weights");
  return std::forward<Use>(use)(Float16{});
}
inline bool is_weight_format(const std::string& format) {
  return format == "F64" || format == "F32" || format == "BF16" || format == "F16";
}

// Numbers of one byte, in which quantized weights are stored; they are only read. Source: OCP 8-bit
// Floating Point Specification, revision 1.0, §5: E4M3 has a bias of 7, no infinities, and NaN
// where all other bits are set; E5M2 is the upper half of a binary16.
inline bool is_fp8(const std::string& format) { return format == "F8_E4M3" || format == "F8_E5M2"; }
double widen_e4m3(std::uint8_t bits);
inline double widen_e5m2(std::uint8_t bits) {
  return Float16::widen(static_cast<Float16::Bits>(bits << 8));
}

template <class Format>
double read_number(const std::byte* place) {
  typename Format::Bits bits;
  std::memcpy(&bits, place, sizeof bits);
  return Format::widen(bits);
}
template <class Format>
void write_number(std::byte* place, double value) {
  const typename Format::Bits bits = Format::narrow(value);
  std::memcpy(place, &bits, sizeof bits);
}

}  // namespace polyphony
