// Kernel bodies that cast the operands of FP8 GEMMs (exec/fused/fp8.h): the largest magnitude of
// each row or column, and the cast itself, which can also transpose.
#pragma once

#include "exec/cuda/drive.h"
#if defined(__CUDACC__)
#include <cuda_fp8.h>
#endif

namespace polyphony::exec::kernels {

// The formats of Micikevicius et al., arXiv 2209.05433, table 1. E4M3 has no infinities.
struct E4m3 {
  static constexpr int kMantissa = 3, kBias = 7;
  static constexpr std::uint8_t kBeyond = 0x7F;  // of numbers that round beyond the largest: NaN
  static constexpr std::uint8_t kLargest = 0x7E;
};
struct E5m2 {
  static constexpr int kMantissa = 2, kBias = 15;
  static constexpr std::uint8_t kBeyond = 0x7C;  // infinity
  static constexpr std::uint8_t kLargest = 0x7B;
};

// Returns x as an FP8 number, rounded to nearest even, as ATen's casts do.
template <class Format>
POLYPHONY_BOTH inline std::uint8_t fp8_of(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  // One instruction. It saturates, but no quotient by the scale rounds beyond the largest number.
  return __nv_cvt_float_to_fp8(x, __NV_SATFINITE,
                               Format::kMantissa == E4m3::kMantissa ? __NV_E4M3 : __NV_E5M2);
#else
  std::uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const auto sign = static_cast<std::uint8_t>((bits >> 24) & 0x80U);
  bits &= 0x7FFFFFFFU;
  if (bits > 0x7F800000U) return static_cast<std::uint8_t>(sign | 0x7F);
  constexpr int kDropped = 23 - Format::kMantissa;
  constexpr std::uint32_t kLeastNormal = static_cast<std::uint32_t>(128 - Format::kBias) << 23;
  if (bits < kLeastNormal) {
    // The addition rounds to a multiple of the smallest number: the last bit of its result.
    constexpr std::uint32_t kShift = static_cast<std::uint32_t>(128 - Format::kBias + kDropped)
                                     << 23;
    float magnitude, shift;
    memcpy(&magnitude, &bits, sizeof bits);
    memcpy(&shift, &kShift, sizeof kShift);
    magnitude += shift;
    memcpy(&bits, &magnitude, sizeof bits);
    return static_cast<std::uint8_t>(sign | (bits - kShift));
  }
  bits += (1U << (kDropped - 1)) - 1U + ((bits >> kDropped) & 1U);
  bits = (bits - (static_cast<std::uint32_t>(127 - Format::kBias) << 23)) >> kDropped;
  return static_cast<std::uint8_t>(
      sign | (bits > Format::kLargest ? Format::kBeyond : static_cast<std::uint8_t>(bits)));
#endif
}

// Returns the larger magnitude; NaN if either is.
POLYPHONY_BOTH inline float larger(float a, float b) {
  const float x = b < 0 ? -b : b;
  return x > a || x != x ? x : a;
}

// largest[row]: the largest magnitude of each row of x [rows, width].
template <class T>
struct RowLargest : NoPuts {
  using Sum = OneSum<float>;
  const T* x;
  float* largest;
  std::int64_t width;
  bool aligned;

  POLYPHONY_BOTH Sum start() const { return {0}; }
  POLYPHONY_BOTH static void join(Sum& sum, const Sum& other) {
    sum.value = sum.value != sum.value ? sum.value : larger(sum.value, other.value);
  }
  POLYPHONY_BOTH void take(Sum& sum, std::int64_t row, std::int64_t pack) const {
    const std::int64_t first = pack * kPack<T>;
    const Pack<T> v = load(x + row * width + first, width - first, aligned);
    for (int e = 0; e < kPack<T>; ++e) join(sum, {static_cast<float>(widened(v.x[e]))});
  }
  POLYPHONY_BOTH void one(std::int64_t row, const Sum& sum) const { largest[row] = sum.value; }
};

// The largest magnitude of each column, over blocks of kRows rows: largest [blocks, width].
// Index: block · packs of a row + pack.
template <class T>
struct ColumnLargest {
  static constexpr std::int64_t kRows = 64;
  const T* x;
  float* largest;
  std::int64_t rows, width, packs;
  bool aligned;

  POLYPHONY_BOTH void operator()(std::int64_t i) const {
    const std::int64_t block = i / packs, first = i % packs * kPack<T>;
    const std::int64_t begin = block * kRows, end = begin + kRows < rows ? begin + kRows : rows;
    float most[kPack<T>] = {};
    for (std::int64_t row = begin; row < end; ++row) {
      const Pack<T> v = load(x + row * width + first, width - first, aligned);
      for (int e = 0; e < kPack<T>; ++e)
        if (most[e] == most[e]) most[e] = larger(most[e], static_cast<float>(widened(v.x[e])));
    }
    for (int e = 0; e < kPack<T>; ++e)
      if (first + e < width) largest[block * width + first + e] = most[e];
  }
};

// Casts x [rows, width] ÷ scale to y [rows, width], with a scale for each row. A scale of step 0 is
// one for all. Index: pack of the whole tensor, whose rows are whole packs.
template <class T, class Format>
struct Fp8Cast {
  struct alignas(kPack<T>) Bytes {
    std::uint8_t x[kPack<T>];
  };
  const T* x;
  const float* scale;
  std::int64_t step;
  std::uint8_t* y;
  std::int64_t packs;  // of a row
  bool aligned;

  POLYPHONY_BOTH void operator()(std::int64_t i) const {
    const Pack<T> v = load(x + i * kPack<T>, kPack<T>, aligned);
    const float inverse = 1 / scale[step * (i / packs)];
    Bytes out;
    for (int e = 0; e < kPack<T>; ++e)
      out.x[e] = fp8_of<Format>(static_cast<float>(widened(v.x[e])) * inverse);
    *reinterpret_cast<Bytes*>(y + i * kPack<T>) = out;
  }
};

// Casts x [rows, width] ÷ scale to y [width, padded], transposed, with a scale for each column of x
// and zeros for rows that do not exist; `padded` is a multiple of kRows.
// Each call takes kRows rows of one pack of columns, so that it writes 16 bytes of each row of y;
// consecutive calls take two such tiles of rows, so that whole 32-byte sectors are written.
// Index: (pair of tiles · packs + pack) · 2 + tile of the pair.
template <class T, class Format>
struct Fp8Transpose {
  static constexpr int kRows = 16;
  const T* x;
  const float* scale;
  std::int64_t step;
  std::uint8_t* y;
  std::int64_t rows, width, packs, padded;
  bool aligned;

  POLYPHONY_BOTH void operator()(std::int64_t i) const {
    const std::int64_t first = i / 2 % packs * kPack<T>;
    const std::int64_t top = (i / 2 / packs * 2 + i % 2) * kRows;
    if (top >= padded) return;
    Pack<std::uint8_t> columns[kPack<T>] = {};
    float inverse[kPack<T>] = {};
    for (int e = 0; e < kPack<T>; ++e)
      if (first + e < width) inverse[e] = 1 / scale[step * (first + e)];
    for (int r = 0; r < kRows; ++r) {
      if (top + r >= rows) break;
      const Pack<T> v = load(x + (top + r) * width + first, width - first, aligned);
      for (int e = 0; e < kPack<T>; ++e)
        columns[e].x[r] = fp8_of<Format>(static_cast<float>(widened(v.x[e])) * inverse[e]);
    }
    for (int e = 0; e < kPack<T>; ++e)
      if (first + e < width) store(y + (first + e) * padded + top, columns[e], kRows, true);
  }
};

}  // namespace polyphony::exec::kernels
