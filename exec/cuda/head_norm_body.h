// Kernel bodies of RMSNorm for each query head and key head of packed rows
// (exec/attention/qk_norm.cpp); values are copied unchanged.
#pragma once

#include "exec/cuda/drive.h"

namespace polyphony::exec::kernels {

// A row of the kernel is one head of qkv [rows, K, g + 2, width]; the last of the g + 2 is the
// value.
template <class T>
struct HeadRow {
  std::int64_t group, width;
  const T* query;  // weights [width]
  const T* key;
  POLYPHONY_BOTH std::int64_t place(std::int64_t row) const { return row % (group + 2); }
  POLYPHONY_BOTH bool is_value(std::int64_t row) const { return place(row) > group; }
  POLYPHONY_BOTH bool is_key(std::int64_t row) const { return place(row) == group; }
  POLYPHONY_BOTH const T* weight(std::int64_t row) const { return is_key(row) ? key : query; }
  // Returns the head's index when only queries and keys are counted.
  POLYPHONY_BOTH std::int64_t normed(std::int64_t row) const {
    return row / (group + 2) * (group + 1) + place(row);
  }
};

template <class T>
struct HeadNormForward : NoColumns, SumsOne<Wide<T>> {
  using W = Wide<T>;
  using Sum = OneSum<W>;
  static constexpr bool kPuts = true;
  HeadRow<T> heads;
  const T* x;
  T* y;
  W* scale;  // one for each query and key
  double epsilon;
  bool aligned;

  POLYPHONY_BOTH void take(Sum& sum, std::int64_t row, std::int64_t pack) const {
    const std::int64_t first = pack * kPack<T>;
    const Pack<T> v = load(x + row * heads.width + first, heads.width - first, aligned);
    for (int e = 0; e < kPack<T>; ++e) sum.value += widened(v.x[e]) * widened(v.x[e]);
  }
  POLYPHONY_BOTH W scale_of(const Sum& sum) const {
    return 1 / square_root(sum.value / static_cast<W>(heads.width) + static_cast<W>(epsilon));
  }
  POLYPHONY_BOTH void one(std::int64_t row, const Sum& sum) const {
    if (!heads.is_value(row)) scale[heads.normed(row)] = scale_of(sum);
  }
  POLYPHONY_BOTH void put(std::int64_t row, std::int64_t pack, const Sum& sum, const float*,
                          std::int64_t) const {
    const std::int64_t first = pack * kPack<T>, left = heads.width - first;
    Pack<T> v = load(x + row * heads.width + first, left, aligned);
    if (!heads.is_value(row)) {
      const Pack<T> w = load(heads.weight(row) + first, left, aligned);
      const W s = scale_of(sum);
      for (int e = 0; e < kPack<T>; ++e)
        v.x[e] = Narrow<T>::of(widened(v.x[e]) * s * widened(w.x[e]));
    }
    store(y + row * heads.width + first, v, left, aligned);
  }
};

// dx null: not wanted. d_weights: sums over each block's heads [blocks, 2, width], for queries and
// for keys; null: not wanted.
template <class T>
struct HeadNormBackward : SumsOne<Wide<T>> {
  using W = Wide<T>;
  using Sum = OneSum<W>;
  using Column = W;
  static constexpr int kColumns = 2 * kPack<T>;
  static constexpr bool kPuts = true;
  HeadRow<T> heads;
  const T* dy;
  const T* x;
  const W* scale;
  T* dx;
  W* d_weights;
  bool aligned;

  POLYPHONY_BOTH void take(Sum& sum, std::int64_t row, std::int64_t pack) const {
    if (dx == nullptr || heads.is_value(row)) return;
    const std::int64_t first = pack * kPack<T>, left = heads.width - first;
    const Pack<T> d = load(dy + row * heads.width + first, left, aligned),
                  v = load(x + row * heads.width + first, left, aligned),
                  w = load(heads.weight(row) + first, left, aligned);
    for (int e = 0; e < kPack<T>; ++e)
      sum.value += widened(d.x[e]) * widened(w.x[e]) * widened(v.x[e]);
  }
  POLYPHONY_BOTH void one(std::int64_t, const Sum&) const {}
  POLYPHONY_BOTH void put(std::int64_t row, std::int64_t pack, const Sum& sum, W* columns,
                          std::int64_t stride) const {
    const std::int64_t first = pack * kPack<T>, left = heads.width - first;
    Pack<T> d = load(dy + row * heads.width + first, left, aligned);
    if (!heads.is_value(row)) {
      const Pack<T> v = load(x + row * heads.width + first, left, aligned),
                    w = load(heads.weight(row) + first, left, aligned);
      const W s = scale[heads.normed(row)];
      const W back = sum.value * s * s * s / static_cast<W>(heads.width);
      W* const mine = columns + (heads.is_key(row) ? kPack<T> * stride : 0);
      for (int e = 0; e < kPack<T>; ++e) {
        const W gradient = widened(d.x[e]), value = widened(v.x[e]);
        if (d_weights != nullptr) mine[e * stride] += gradient * value * s;
        d.x[e] = Narrow<T>::of(gradient * widened(w.x[e]) * s - value * back);
      }
    }
    if (dx != nullptr) store(dx + row * heads.width + first, d, left, aligned);
  }
  POLYPHONY_BOTH void store_columns(int block, std::int64_t pack, const W* columns,
                                    std::int64_t stride) const {
    if (d_weights == nullptr) return;
    const std::int64_t first = pack * kPack<T>;
    for (int which = 0; which < 2; ++which)
      for (int e = 0; e < kPack<T>; ++e)
        if (first + e < heads.width)
          d_weights[(2 * block + which) * heads.width + first + e] =
              columns[(which * kPack<T> + e) * stride];
  }
};

}  // namespace polyphony::exec::kernels
