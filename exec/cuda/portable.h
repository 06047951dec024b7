// The types and functions from which kernel bodies are written, such that both nvcc and the C++
// compiler accept them: the code that runs on a GPU is also tested on a CPU, number by number
// (tests/exec/fused). This header includes no LibTorch header.
//   body      a small struct of pointers and sizes, with the computation for one pack or one row
//   pack      16 bytes of consecutive elements: one load or store if the address is aligned
//   formats   bf16 is computed in fp32 and rounded once, to nearest even (as in ATen); fp32 and
//             fp64 are computed in their own format
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define POLYPHONY_BOTH __host__ __device__
#else
#define POLYPHONY_BOTH
#endif

namespace polyphony::exec::kernels {

struct Bf16 {
  std::uint16_t bits;
};

template <class T>
struct WideOf {
  using Type = T;
};
template <>
struct WideOf<Bf16> {
  using Type = float;
};
template <class T>
using Wide = typename WideOf<T>::Type;

template <class T>
POLYPHONY_BOTH inline T widened(T x) {
  return x;
}
POLYPHONY_BOTH inline float widened(Bf16 x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x.bits) << 16;
  float wide;
  memcpy(&wide, &bits, sizeof wide);
  return wide;
}

template <class T>
struct Narrow {
  POLYPHONY_BOTH static T of(T x) { return x; }
};
template <>
struct Narrow<Bf16> {
  POLYPHONY_BOTH static Bf16 of(float x) {
    if (x != x) return {0x7FC0};
    std::uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16)};
  }
};

template <class T>
constexpr int kPack = static_cast<int>(16 / sizeof(T));

template <class T>
struct alignas(16) Pack {
  T x[kPack<T>];
};

// Load or store one pack, of which the first `count` elements exist (fewer than a pack at the end
// of a tensor); load() sets the others to zero. `aligned`: all packs begin at a multiple of 16
// bytes.
template <class T>
POLYPHONY_BOTH inline Pack<T> load(const T* from, std::int64_t count, bool aligned) {
  if (aligned && count >= kPack<T>) return *reinterpret_cast<const Pack<T>*>(from);
  Pack<T> pack{};
  for (int i = 0; i < kPack<T>; ++i)
    if (i < count) pack.x[i] = from[i];
  return pack;
}
template <class T>
POLYPHONY_BOTH inline void store(T* to, const Pack<T>& pack, std::int64_t count, bool aligned) {
  if (aligned && count >= kPack<T>) {
    *reinterpret_cast<Pack<T>*>(to) = pack;
    return;
  }
  for (int i = 0; i < kPack<T>; ++i)
    if (i < count) to[i] = pack.x[i];
}

template <class T>
POLYPHONY_BOTH constexpr std::int64_t packs_of(std::int64_t elements) {
  return (elements + kPack<T> - 1) / kPack<T>;
}
inline bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

// Overloads for float and double, of functions that nvcc supports in device code.
POLYPHONY_BOTH inline float exponential(float x) { return expf(x); }
POLYPHONY_BOTH inline double exponential(double x) { return exp(x); }
template <class W>
POLYPHONY_BOTH inline W infinity() {
  return static_cast<W>(INFINITY);
}
POLYPHONY_BOTH inline float square_root(float x) { return sqrtf(x); }
POLYPHONY_BOTH inline double square_root(double x) { return sqrt(x); }

}  // namespace polyphony::exec::kernels
