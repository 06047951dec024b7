// Resizes 8-bit RGB images with a bilinear or bicubic filter, antialiased, with the arithmetic of
// PIL's Image.resize(), so that every pixel equals PIL's.
//   Columns first, then rows; each pass rounds to 8 bits, and a pass that keeps the length is left
//   out. An output pixel is a weighted mean of the inputs within the filter's support around its
//   center, which is scaled by the ratio of lengths when an image shrinks. Weights are normalized
//   in fp64, then rounded to multiples of 2^-22; sums are 32-bit integers.
// Source: Pillow 12.3, src/libImaging/Resample.c (precompute_coeffs, normalize_coeffs_8bpc and the
// two passes); the cubic is Keys' with a = -0.5 (IEEE Trans. ASSP 29(6), 1981).
#pragma once

#include <cstdint>
#include <vector>

namespace polyphony::exec {

struct PixelSize {
  std::int64_t height = 0, width = 0;
  bool operator==(const PixelSize&) const = default;
};

enum class Filter : std::uint8_t { bilinear, bicubic };

// Returns the image with size `to`, as rows of RGB. `rgb` has rows of RGB of size `from`. Neither
// size may be empty. Thread-safe.
std::vector<unsigned char> resize_image(const unsigned char* rgb, PixelSize from, PixelSize to,
                                        Filter filter);

}  // namespace polyphony::exec
