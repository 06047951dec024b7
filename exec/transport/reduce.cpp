#include "exec/transport/reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace polyphony::exec {

namespace {

// Small enough for the accumulator and a source to stay in the first-level cache; a fixed count
// lets the compiler vectorize.
constexpr std::size_t kBlock = 1024;

struct Bfloat16 {
  std::uint16_t bits;
};

template <class T>
T widen(T value) {
  return value;
}
inline float widen(Bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

template <class T, class Accumulator>
T narrow(Accumulator value) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value)) return Bfloat16{0x7fc0};
    // Round to nearest, ties to even.
    return Bfloat16{static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
  } else {
    return value;
  }
}

template <class A>
A add(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(static_cast<std::make_unsigned_t<A>>(a) +
                          static_cast<std::make_unsigned_t<A>>(b));
  } else {
    return a + b;
  }
}

template <class A>
A larger(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) {
    return a > b || std::isnan(a) ? a : b;
  } else {
    return a > b ? a : b;
  }
}

template <class T>
void reduce_typed(Reduction reduction, std::span<const std::byte* const> sources,
                  std::span<std::byte* const> destinations, std::size_t count) {
  using Accumulator = decltype(widen(T{}));
  std::array<T, kBlock> loaded;
  std::array<Accumulator, kBlock> total;
  for (std::size_t start = 0; start < count; start += kBlock) {
    const std::size_t used = std::min(kBlock, count - start);
    if (used < kBlock) loaded.fill(T{});  // the tail is also computed, but not stored
    const std::size_t offset = start * sizeof(T);
    std::memcpy(loaded.data(), sources[0] + offset, used * sizeof(T));
    for (std::size_t i = 0; i < kBlock; ++i) total[i] = widen(loaded[i]);
    for (const std::byte* source : sources.subspan(1)) {
      std::memcpy(loaded.data(), source + offset, used * sizeof(T));
      if (reduction == Reduction::sum) {
        for (std::size_t i = 0; i < kBlock; ++i) total[i] = add(total[i], widen(loaded[i]));
      } else {
        for (std::size_t i = 0; i < kBlock; ++i) total[i] = larger(total[i], widen(loaded[i]));
      }
    }
    for (std::size_t i = 0; i < kBlock; ++i) loaded[i] = narrow<T>(total[i]);
    for (std::byte* destination : destinations) {
      std::memcpy(destination + offset, loaded.data(), used * sizeof(T));
    }
  }
}

}  // namespace

std::size_t size_of(Element element) {
  switch (element) {
    case Element::float32:
      return 4;
    case Element::float64:
    case Element::int64:
      return 8;
    case Element::bfloat16:
      return 2;
  }
  return 0;
}

void reduce(Element element, Reduction reduction, std::span<const std::byte* const> sources,
            std::span<std::byte* const> destinations, std::size_t count) {
  switch (element) {
    case Element::float32:
      return reduce_typed<float>(reduction, sources, destinations, count);
    case Element::float64:
      return reduce_typed<double>(reduction, sources, destinations, count);
    case Element::bfloat16:
      return reduce_typed<Bfloat16>(reduction, sources, destinations, count);
    case Element::int64:
      return reduce_typed<std::int64_t>(reduction, sources, destinations, count);
  }
}

}  // namespace polyphony::exec
