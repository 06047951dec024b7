// Kernel bodies of the cross-entropy over a part of a vocabulary (exec/layers/vocabulary.cpp), on
// logits in the format in which the GEMM wrote them.
#pragma once

#include "exec/cuda/drive.h"

namespace polyphony::exec::kernels {

// A running maximum and Σ e^(l − largest) over the logits taken so far; initially −∞ and 0. If all
// logits are −∞, the sum stays 0 and the loss is NaN, as in ATen; if one is NaN, the sum is NaN.
template <class W>
struct ExpSum {
  W largest, sum;
};

// Computes a row's largest logit, the sum of exponentials relative to it, and the label's logit (0
// if another rank has it).
template <class T>
struct LogitRows : NoPuts {
  using W = Wide<T>;
  using Sum = ExpSum<W>;
  const T* logits;  // [rows, width]
  const std::int64_t* ids;
  const bool* mine;  // null: all
  W* largest;
  W* sums;
  W* labels;
  std::int64_t width;
  bool aligned;

  POLYPHONY_BOTH Sum start() const { return {-infinity<W>(), 0}; }
  POLYPHONY_BOTH static void join(Sum& sum, const Sum& other) {
    if (other.sum == 0) return;
    if (sum.sum == 0) {
      sum = other;
      return;
    }
    const W largest = sum.largest > other.largest ? sum.largest : other.largest;
    sum.sum = sum.sum * exponential(sum.largest - largest) +
              other.sum * exponential(other.largest - largest);
    sum.largest = largest;
  }
  POLYPHONY_BOTH void take(Sum& sum, std::int64_t row, std::int64_t pack) const {
    const std::int64_t first = pack * kPack<T>, left = width - first;
    const Pack<T> v = load(logits + row * width + first, left, aligned);
    Sum of_pack = start();
    for (int e = 0; e < kPack<T>; ++e)
      if (e < left && widened(v.x[e]) > of_pack.largest) of_pack.largest = widened(v.x[e]);
    for (int e = 0; e < kPack<T>; ++e)
      if (e < left && widened(v.x[e]) != -infinity<W>())
        of_pack.sum += exponential(widened(v.x[e]) - of_pack.largest);
    join(sum, of_pack);
  }
  POLYPHONY_BOTH void one(std::int64_t row, const Sum& sum) const {
    largest[row] = sum.largest;
    sums[row] = sum.sum;
    labels[row] =
        mine == nullptr || mine[row] ? widened(logits[row * width + ids[row]]) : static_cast<W>(0);
  }
};

// Computes (e^(l − largest) ÷ sum − [label]) · scale · *gradient in place.
template <class T>
struct LogitGradient {
  using W = Wide<T>;
  T* logits;
  const std::int64_t* ids;
  const bool* mine;
  const W* largest;
  const W* sums;
  const W* gradient;
  double scale;
  std::int64_t width;
  bool aligned;
  POLYPHONY_BOTH void operator()(std::int64_t i) const {
    const std::int64_t packs = packs_of<T>(width), row = i / packs;
    const std::int64_t first = (i - row * packs) * kPack<T>, left = width - first;
    T* const at = logits + row * width + first;
    const std::int64_t label = mine == nullptr || mine[row] ? ids[row] - first : -1;
    const W by = *gradient * static_cast<W>(scale), most = largest[row], sum = sums[row];
    Pack<T> v = load(at, left, aligned);
    for (int e = 0; e < kPack<T>; ++e)
      v.x[e] = Narrow<T>::of(
          (exponential(widened(v.x[e]) - most) / sum - (e == label ? W(1) : W(0))) * by);
    store(at, v, left, aligned);
  }
};

}  // namespace polyphony::exec::kernels
