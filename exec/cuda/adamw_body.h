// Kernel bodies of one AdamW step over many tensors at once. exec/parameters/optimizer.h has the
// formulas.
#pragma once

#include "exec/cuda/portable.h"

namespace polyphony::exec::kernels {

// Computes the terms that all updates of a step share. This runs on the device, because some of the
// inputs may exist only there.
struct AdamWTerms {
  const double* clip;  // null: 1
  const float* count;
  const float* skip;  // null: 0
  double* made;       // [4]: rate ÷ (1 − β1ᵗ), √(1 − β2ᵗ), clip, skip
  double beta1, beta2, rate;
  POLYPHONY_BOTH void operator()(std::int64_t) const {
    const double steps = static_cast<double>(*count);
    made[0] = rate / (1 - pow(beta1, steps));
    made[1] = sqrt(1 - pow(beta2, steps));
    made[2] = clip == nullptr ? 1 : *clip;
    made[3] = skip == nullptr ? 0 : static_cast<double>(*skip);
  }
};

// Number of packs that one entry of the list of chunks covers.
constexpr std::int64_t kAdamWPacks = 1024;

// One parameter's tensors, made of 64-bit words only, because the list of them is copied to the
// device.
template <class T>
struct AdamWTensor {
  Wide<T>* gradient;
  Wide<T>* first;
  Wide<T>* second;
  Wide<T>* master;
  T* value;  // null: master is the value
  std::int64_t count;
  std::int64_t decays;
  std::int64_t aligned;
};

struct AdamWChunk {
  std::int64_t tensor, first_pack;
};

// Updates pack i, with kAdamWPacks packs per chunk; a pack has fp32 (or fp64) elements.
template <class T>
struct AdamW {
  using W = Wide<T>;
  const AdamWTensor<T>* tensors;
  const AdamWChunk* chunks;
  const double* terms;
  W keep1, new1, keep2, new2, epsilon;  // β1, 1 − β1, β2, 1 − β2
  W keep;                               // 1 − rate · weight decay
  POLYPHONY_BOTH void operator()(std::int64_t i) const {
    if (terms[3] != 0) return;
    const AdamWChunk chunk = chunks[i / kAdamWPacks];
    const AdamWTensor<T> tensor = tensors[chunk.tensor];
    const std::int64_t at = (chunk.first_pack + i % kAdamWPacks) * kPack<W>;
    const std::int64_t left = tensor.count - at;
    if (left <= 0) return;
    const bool aligned = tensor.aligned != 0;
    const Pack<W> g = load(tensor.gradient + at, left, aligned);
    Pack<W> m = load(tensor.first + at, left, aligned), v = load(tensor.second + at, left, aligned),
            w = load(tensor.master + at, left, aligned);
    const W size = static_cast<W>(terms[0]), root = static_cast<W>(terms[1]),
            clip = static_cast<W>(terms[2]);
    const W kept = tensor.decays != 0 ? keep : 1;
    for (int e = 0; e < kPack<W>; ++e) {
      const W gradient = g.x[e] * clip;
      m.x[e] = keep1 * m.x[e] + new1 * gradient;
      v.x[e] = keep2 * v.x[e] + new2 * gradient * gradient;
      w.x[e] = w.x[e] * kept - size * m.x[e] / (square_root(v.x[e]) / root + epsilon);
    }
    store(tensor.first + at, m, left, aligned);
    store(tensor.second + at, v, left, aligned);
    store(tensor.master + at, w, left, aligned);
    if (tensor.value == nullptr) return;
    // The rounded values: half a pack, or fewer at the end. If all is aligned, four bf16 are one
    // store of 8 bytes.
    struct alignas(8) Half {
      T x[kPack<W>];
    } half;
    for (int e = 0; e < kPack<W>; ++e) half.x[e] = Narrow<T>::of(w.x[e]);
    if (aligned && left >= kPack<W>) {
      *reinterpret_cast<Half*>(tensor.value + at) = half;
      return;
    }
    for (int e = 0; e < kPack<W>; ++e)
      if (e < left) tensor.value[at + e] = half.x[e];
  }
};

}  // namespace polyphony::exec::kernels
