// Physical quantities as types: a byte count cannot be added to a FLOP count, and bytes divided by
// a rate are a time.
//   Seconds (chrono, double) · Bytes (int64)
//   Flops · BytesPerSecond · FlopsPerSecond · Watts · Joules (double)
// Construction is explicit. `.value` (or `.count()`) is only used where a number is passed to
// SimGrid, LibTorch or text. Rates are in bytes, never in bits: the text 400Gbps is parsed to 50e9
// bytes per second (shared/text/quantity_text.h).
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace polyphony {

using Seconds = std::chrono::duration<double>;

template <class Tag, class Rep>
struct Quantity {
  Rep value{};
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep v) : value(v) {}
  auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value -= other.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value + b.value);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value - b.value);
  }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity(a.value * k); }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity(a.value * k); }
  friend constexpr Quantity operator/(Quantity a, Rep k) { return Quantity(a.value / k); }
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flops = Quantity<struct FlopsTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;
using Watts = Quantity<struct WattsTag, double>;
using Joules = Quantity<struct JoulesTag, double>;

constexpr Seconds operator/(Bytes work, BytesPerSecond rate) {
  return Seconds(static_cast<double>(work.value) / rate.value);
}
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) {
  return Seconds(work.value / rate.value);
}
constexpr Joules operator*(Watts power, Seconds time) { return Joules(power.value * time.count()); }

namespace literals {
constexpr Bytes operator""_B(unsigned long long v) { return Bytes(static_cast<std::int64_t>(v)); }
constexpr Bytes operator""_KiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v) << 10);
}
constexpr Bytes operator""_MiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v) << 20);
}
constexpr Bytes operator""_GiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v) << 30);
}
constexpr BytesPerSecond operator""_GBps(unsigned long long v) {
  return BytesPerSecond(static_cast<double>(v) * 1e9);
}
constexpr BytesPerSecond operator""_Gbps(unsigned long long v) {
  return BytesPerSecond(static_cast<double>(v) * 1e9 / 8);
}
constexpr FlopsPerSecond operator""_TFLOPs(unsigned long long v) {
  return FlopsPerSecond(static_cast<double>(v) * 1e12);
}
}  // namespace literals

}  // namespace polyphony
