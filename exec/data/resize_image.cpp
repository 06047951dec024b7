#include "exec/data/resize_image.h"

#include <algorithm>
#include <cmath>

namespace polyphony::exec {
namespace {

constexpr std::size_t kChannels = 3;
// Bits of a weight behind the point: 32 less 8 of a pixel, and 2 for weights above 1 and the sign.
constexpr int kBits = 32 - 8 - 2;

double support_of(Filter filter) { return filter == Filter::bilinear ? 1 : 2; }

double value_of(Filter filter, double x) {
  x = std::abs(x);
  if (filter == Filter::bilinear) return x < 1 ? 1 - x : 0;
  constexpr double kA = -0.5;
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * kA : 0;
}

// The inputs of an output pixel along one axis, and their weights.
struct Weights {
  std::size_t first = 0;
  std::vector<std::int32_t> values;
};

std::vector<Weights> weights_of(Filter filter, std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double stretch = std::max(scale, 1.0), inverse = 1 / stretch;
  const double support = support_of(filter) * stretch;
  std::vector<Weights> all(static_cast<std::size_t>(to));
  std::vector<double> values;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    // Casts round towards 0, also numbers just below 0.
    const auto begin = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - support + 0.5));
    const auto end = std::min(from, static_cast<std::int64_t>(center + support + 0.5));
    values.clear();
    double sum = 0;
    for (std::int64_t k = begin; k < end; ++k) {
      values.push_back(value_of(filter, (static_cast<double>(k) - center + 0.5) * inverse));
      sum += values.back();
    }
    all[i].first = static_cast<std::size_t>(begin);
    for (const double value : values) {
      const double weight = (sum != 0 ? value / sum : value) * (1 << kBits);
      all[i].values.push_back(static_cast<std::int32_t>(weight + (weight < 0 ? -0.5 : 0.5)));
    }
  }
  return all;
}

constexpr std::int32_t kHalf = 1 << (kBits - 1);

unsigned char rounded(std::int32_t sum) {
  return static_cast<unsigned char>(std::clamp(sum >> kBits, 0, 255));
}

// Resizes each of `rows` rows of `from` pixels to `to`.
std::vector<unsigned char> resize_rows(const unsigned char* rgb, std::size_t rows,
                                       std::int64_t from, std::int64_t to, Filter filter) {
  const std::vector<Weights> all = weights_of(filter, from, to);
  std::vector<unsigned char> result(rows * all.size() * kChannels);
  unsigned char* write = result.data();
  for (std::size_t row = 0; row < rows; ++row) {
    const unsigned char* line = rgb + row * static_cast<std::size_t>(from) * kChannels;
    for (const Weights& weights : all) {
      const unsigned char* read = line + weights.first * kChannels;
      std::int32_t red = kHalf, green = kHalf, blue = kHalf;
      for (const std::int32_t weight : weights.values) {
        red += weight * read[0];
        green += weight * read[1];
        blue += weight * read[2];
        read += kChannels;
      }
      *write++ = rounded(red);
      *write++ = rounded(green);
      *write++ = rounded(blue);
    }
  }
  return result;
}

// Resizes columns of `from` pixels to `to`; a row has `values` numbers.
std::vector<unsigned char> resize_columns(const unsigned char* rgb, std::size_t values,
                                          std::int64_t from, std::int64_t to, Filter filter) {
  const std::vector<Weights> all = weights_of(filter, from, to);
  std::vector<unsigned char> result(all.size() * values);
  std::vector<std::int32_t> sums(values);
  unsigned char* write = result.data();
  for (const Weights& weights : all) {
    std::fill(sums.begin(), sums.end(), kHalf);
    const unsigned char* read = rgb + weights.first * values;
    for (const std::int32_t weight : weights.values) {
      for (std::size_t i = 0; i < values; ++i) sums[i] += weight * read[i];
      read += values;
    }
    for (const std::int32_t sum : sums) *write++ = rounded(sum);
  }
  return result;
}

}  // namespace

std::vector<unsigned char> resize_image(const unsigned char* rgb, PixelSize from, PixelSize to,
                                        Filter filter) {
  const auto height = static_cast<std::size_t>(from.height);
  const std::size_t values = static_cast<std::size_t>(to.width) * kChannels;
  std::vector<unsigned char> narrowed;
  if (from.width != to.width) {
    narrowed = resize_rows(rgb, height, from.width, to.width, filter);
    rgb = narrowed.data();
  }
  if (from.height != to.height) return resize_columns(rgb, values, from.height, to.height, filter);
  return narrowed.empty() ? std::vector<unsigned char>(rgb, rgb + height * values) : narrowed;
}

}  // namespace polyphony::exec
