// Kernel bodies that combine the experts' output rows into token rows as weighted sums, and their
// gradients (exec/experts/dispatch.h). There are S = T·k slots; token t has the slots t·k to
// t·k + k − 1.
#pragma once

#include "exec/cuda/drive.h"

namespace polyphony::exec::kernels {

// Computes pack i of y [T, width] = Σ_c weight[t·k + c] · here[place[t·k + c]], in the order of c.
// weights null: 1.
template <class T>
struct Combine {
  using W = Wide<T>;
  const T* here;
  const std::int64_t* place;
  const W* weights;
  T* y;
  std::int64_t per_token, width;
  bool aligned;
  POLYPHONY_BOTH void operator()(std::int64_t i) const {
    const std::int64_t packs = packs_of<T>(width), token = i / packs;
    const std::int64_t first = (i - token * packs) * kPack<T>, left = width - first;
    W sums[kPack<T>] = {};
    for (std::int64_t slot = token * per_token; slot < (token + 1) * per_token; ++slot) {
      const Pack<T> v = load(here + place[slot] * width + first, left, aligned);
      const W weight = weights == nullptr ? W(1) : weights[slot];
      for (int e = 0; e < kPack<T>; ++e) sums[e] += widened(v.x[e]) * weight;
    }
    Pack<T> out;
    for (int e = 0; e < kPack<T>; ++e) out.x[e] = Narrow<T>::of(sums[e]);
    store(y + token * width + first, out, left, aligned);
  }
};

// Row r of `here` belongs to slot order[r]. Computes d_here = weight · dy of its token, and
// d_weights[slot] = dy · here.
template <class T>
struct CombineBackward : NoColumns, SumsOne<Wide<T>> {
  using W = Wide<T>;
  using Sum = OneSum<W>;
  static constexpr bool kPuts = true;
  const T* dy;
  const T* here;
  const std::int64_t* order;
  const W* weights;
  T* d_here;
  W* d_weights;
  std::int64_t per_token, width;
  bool aligned;

  POLYPHONY_BOTH const T* gradient(std::int64_t row) const {
    return dy + order[row] / per_token * width;
  }
  POLYPHONY_BOTH void take(Sum& sum, std::int64_t row, std::int64_t pack) const {
    const std::int64_t first = pack * kPack<T>, left = width - first;
    const Pack<T> d = load(gradient(row) + first, left, aligned),
                  v = load(here + row * width + first, left, aligned);
    for (int e = 0; e < kPack<T>; ++e) sum.value += widened(d.x[e]) * widened(v.x[e]);
  }
  POLYPHONY_BOTH void one(std::int64_t row, const Sum& sum) const {
    d_weights[order[row]] = sum.value;
  }
  POLYPHONY_BOTH void put(std::int64_t row, std::int64_t pack, const Sum&, const float*,
                          std::int64_t) const {
    const std::int64_t first = pack * kPack<T>, left = width - first;
    const Pack<T> d = load(gradient(row) + first, left, aligned);
    const W weight = weights[order[row]];
    Pack<T> out;
    for (int e = 0; e < kPack<T>; ++e) out.x[e] = Narrow<T>::of(widened(d.x[e]) * weight);
    store(d_here + row * width + first, out, left, aligned);
  }
};

}  // namespace polyphony::exec::kernels
