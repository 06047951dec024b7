// Kernel bodies of RMSNorm and its gradients, and of the gradients of LayerNorm.
// exec/autograd/norm.cpp has the formulas.
#pragma once

#include "exec/cuda/drive.h"

namespace polyphony::exec::kernels {

template <class T>
struct RmsForward : NoColumns, SumsOne<Wide<T>> {
  using W = Wide<T>;
  using Sum = OneSum<W>;
  static constexpr bool kPuts = true;
  const T* x;
  const T* weight;
  T* y;
  W* scale;  // [rows]
  std::int64_t width;
  double epsilon;
  bool aligned;

  POLYPHONY_BOTH void take(Sum& sum, std::int64_t row, std::int64_t pack) const {
    const std::int64_t first = pack * kPack<T>;
    const Pack<T> v = load(x + row * width + first, width - first, aligned);
    for (int e = 0; e < kPack<T>; ++e) sum.value += widened(v.x[e]) * widened(v.x[e]);
  }
  POLYPHONY_BOTH W scale_of(const Sum& sum) const {
    return 1 / square_root(sum.value / static_cast<W>(width) + static_cast<W>(epsilon));
  }
  POLYPHONY_BOTH void one(std::int64_t row, const Sum& sum) const { scale[row] = scale_of(sum); }
  POLYPHONY_BOTH void put(std::int64_t row, std::int64_t pack, const Sum& sum, const float*,
                          std::int64_t) const {
    const std::int64_t first = pack * kPack<T>, left = width - first;
    const Pack<T> v = load(x + row * width + first, left, aligned),
                  w = load(weight + first, left, aligned);
    const W s = scale_of(sum);
    Pack<T> out;
    for (int e = 0; e < kPack<T>; ++e)
      out.x[e] = Narrow<T>::of(widened(v.x[e]) * s * widened(w.x[e]));
    store(y + row * width + first, out, left, aligned);
  }
};

// dx null: not wanted. d_weight: Σ dy∘x·scale over each block's rows [blocks, width]; null: not
// wanted.
template <class T>
struct RmsBackward : SumsOne<Wide<T>> {
  using W = Wide<T>;
  using Sum = OneSum<W>;
  using Column = W;
  static constexpr int kColumns = kPack<T>;
  static constexpr bool kPuts = true;
  const T* dy;
  const T* x;
  const T* weight;
  const W* scale;
  T* dx;
  W* d_weight;
  std::int64_t width;
  bool aligned;

  POLYPHONY_BOTH void take(Sum& sum, std::int64_t row, std::int64_t pack) const {
    if (dx == nullptr) return;
    const std::int64_t first = pack * kPack<T>, left = width - first;
    const Pack<T> d = load(dy + row * width + first, left, aligned),
                  v = load(x + row * width + first, left, aligned),
                  w = load(weight + first, left, aligned);
    for (int e = 0; e < kPack<T>; ++e)
      sum.value += widened(d.x[e]) * widened(w.x[e]) * widened(v.x[e]);
  }
  POLYPHONY_BOTH void one(std::int64_t, const Sum&) const {}
  POLYPHONY_BOTH void put(std::int64_t row, std::int64_t pack, const Sum& sum, W* columns,
                          std::int64_t stride) const {
    const std::int64_t first = pack * kPack<T>, left = width - first;
    const Pack<T> d = load(dy + row * width + first, left, aligned),
                  v = load(x + row * width + first, left, aligned);
    const W s = scale[row];
    if (d_weight != nullptr)
      for (int e = 0; e < kPack<T>; ++e)
        columns[e * stride] += widened(d.x[e]) * widened(v.x[e]) * s;
    if (dx == nullptr) return;
    const Pack<T> w = load(weight + first, left, aligned);
    const W back = sum.value * s * s * s / static_cast<W>(width);
    Pack<T> out;
    for (int e = 0; e < kPack<T>; ++e)
      out.x[e] = Narrow<T>::of(widened(d.x[e]) * widened(w.x[e]) * s - widened(v.x[e]) * back);
    store(dx + row * width + first, out, left, aligned);
  }
  POLYPHONY_BOTH void store_columns(int block, std::int64_t pack, const W* columns,
                                    std::int64_t stride) const {
    if (d_weight == nullptr) return;
    const std::int64_t first = pack * kPack<T>;
    for (int e = 0; e < kPack<T>; ++e)
      if (first + e < width) d_weight[block * width + first + e] = columns[e * stride];
  }
};

// The gradients of LayerNorm, with z = (x − mean)·scale and g = dy∘w. dx null: not wanted.
// d_parameters: Σ dy∘z and Σ dy over each block's rows [blocks, 2, width]; null: not wanted.
template <class T>
struct LayerBackward {
  using W = Wide<T>;
  struct Sum {
    W slope, along;  // Σ g, Σ g∘z
  };
  using Column = W;
  static constexpr int kColumns = 2 * kPack<T>;
  static constexpr bool kPuts = true;
  const T* dy;
  const T* x;
  const T* weight;
  const W* mean;
  const W* scale;
  T* dx;
  W* d_parameters;
  std::int64_t width;
  bool aligned;

  POLYPHONY_BOTH Sum start() const { return {0, 0}; }
  POLYPHONY_BOTH static void join(Sum& sum, const Sum& other) {
    sum.slope += other.slope;
    sum.along += other.along;
  }
  POLYPHONY_BOTH void take(Sum& sum, std::int64_t row, std::int64_t pack) const {
    if (dx == nullptr) return;
    const std::int64_t first = pack * kPack<T>, left = width - first;
    const Pack<T> d = load(dy + row * width + first, left, aligned),
                  v = load(x + row * width + first, left, aligned),
                  w = load(weight + first, left, aligned);
    for (int e = 0; e < kPack<T>; ++e) {
      const W g = widened(d.x[e]) * widened(w.x[e]);
      sum.slope += g;
      sum.along += g * ((widened(v.x[e]) - mean[row]) * scale[row]);
    }
  }
  POLYPHONY_BOTH void one(std::int64_t, const Sum&) const {}
  POLYPHONY_BOTH void put(std::int64_t row, std::int64_t pack, const Sum& sum, W* columns,
                          std::int64_t stride) const {
    const std::int64_t first = pack * kPack<T>, left = width - first;
    const Pack<T> d = load(dy + row * width + first, left, aligned),
                  v = load(x + row * width + first, left, aligned);
    const W m = mean[row], s = scale[row];
    if (d_parameters != nullptr)
      for (int e = 0; e < kPack<T>; ++e) {
        columns[e * stride] += widened(d.x[e]) * ((widened(v.x[e]) - m) * s);
        columns[(kPack<T> + e) * stride] += widened(d.x[e]);
      }
    if (dx == nullptr) return;
    const Pack<T> w = load(weight + first, left, aligned);
    const W slope = sum.slope / static_cast<W>(width), along = sum.along / static_cast<W>(width);
    Pack<T> out;
    for (int e = 0; e < kPack<T>; ++e)
      out.x[e] = Narrow<T>::of(
          s * (widened(d.x[e]) * widened(w.x[e]) - slope - (widened(v.x[e]) - m) * s * along));
    store(dx + row * width + first, out, left, aligned);
  }
  POLYPHONY_BOTH void store_columns(int block, std::int64_t pack, const W* columns,
                                    std::int64_t stride) const {
    if (d_parameters == nullptr) return;
    const std::int64_t first = pack * kPack<T>;
    for (int which = 0; which < 2; ++which)
      for (int e = 0; e < kPack<T>; ++e)
        if (first + e < width)
          d_parameters[(2 * block + which) * width + first + e] =
              columns[(which * kPack<T> + e) * stride];
  }
};

}  // namespace polyphony::exec::kernels
