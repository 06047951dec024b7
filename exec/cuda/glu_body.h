// Kernel bodies of gated linear units and their gradients, element by element; exec/autograd/glu.h
// has the formulas.
#pragma once

#include "exec/cuda/portable.h"

namespace polyphony::exec::kernels {

enum class Gate : int { silu, gelu, clamped };

template <class W>
struct GluValue {
  W d_gate, d_up, y;  // the gradients per unit of dy, and the value
};

template <class W>
POLYPHONY_BOTH inline W sigmoid(W x) {
  return 1 / (1 + exponential(-x));
}

// Clamps that propagate NaN, as ATen's do.
template <class W>
POLYPHONY_BOTH inline W at_most(W x, W limit) {
  return x > limit ? limit : x;
}
template <class W>
POLYPHONY_BOTH inline W at_least(W x, W limit) {
  return x < limit ? limit : x;
}

template <class W>
POLYPHONY_BOTH inline GluValue<W> glu_value(Gate kind, W gate, W up) {
  if (kind == Gate::silu) {
    const W s = sigmoid(gate), silu = gate / (1 + exponential(-gate));
    return {up * s * (1 + gate * (1 - s)), silu, silu * up};
  }
  if (kind == Gate::gelu) {
    // ½ g (1 + tanh u) = g σ(2u), u = √(2/π) (g + 0.044715 g³): avoids cancellation
    const W beta = W(0.7978845608028654), kappa = W(0.044715);
    const W z = 2 * beta * (gate + kappa * gate * gate * gate), s = sigmoid(z);
    const W slope = s * sigmoid(-z) * 2 * beta * (1 + 3 * kappa * gate * gate);
    return {up * (s + gate * slope), gate * s, gate * s * up};
  }
  const W steepness = W(1.702), limit = 7;
  const W h = at_most(gate, limit), v = at_most(at_least(up, -limit), limit);
  const W z = steepness * h, s = sigmoid(z), share = h / (1 + exponential(-z));
  const W d_gate = (v + 1) * s * (1 + z * (1 - s));
  return {gate >= limit ? 0 : d_gate, up >= limit || up <= -limit ? 0 : share, (v + 1) * share};
}

// Computes pack i of y [count] from pairs of gate and up [2·count].
template <class T>
struct GluForward {
  const T* pairs;
  T* y;
  std::int64_t count;
  Gate kind;
  bool aligned;
  POLYPHONY_BOTH void operator()(std::int64_t i) const {
    const std::int64_t first = i * kPack<T>, left = count - first;
    const Pack<T> halves[2] = {load(pairs + 2 * first, 2 * left, aligned),
                               load(pairs + 2 * first + kPack<T>, 2 * left - kPack<T>, aligned)};
    Pack<T> out;
    for (int e = 0; e < kPack<T>; ++e) {
      const T* const pair = halves[2 * e / kPack<T>].x + 2 * e % kPack<T>;
      out.x[e] = Narrow<T>::of(glu_value(kind, widened(pair[0]), widened(pair[1])).y);
    }
    store(y + first, out, left, aligned);
  }
};

template <class T>
struct GluBackward {
  const T* dy;
  const T* pairs;
  T* d_pairs;
  std::int64_t count;
  Gate kind;
  bool aligned;
  POLYPHONY_BOTH void operator()(std::int64_t i) const {
    const std::int64_t first = i * kPack<T>, left = count - first;
    const Pack<T> d = load(dy + first, left, aligned);
    const Pack<T> halves[2] = {load(pairs + 2 * first, 2 * left, aligned),
                               load(pairs + 2 * first + kPack<T>, 2 * left - kPack<T>, aligned)};
    Pack<T> out[2];
    for (int e = 0; e < kPack<T>; ++e) {
      const int half = 2 * e / kPack<T>, at = 2 * e % kPack<T>;
      const T* const pair = halves[half].x + at;
      const auto value = glu_value(kind, widened(pair[0]), widened(pair[1]));
      out[half].x[at] = Narrow<T>::of(widened(d.x[e]) * value.d_gate);
      out[half].x[at + 1] = Narrow<T>::of(widened(d.x[e]) * value.d_up);
    }
    store(d_pairs + 2 * first, out[0], 2 * left, aligned);
    store(d_pairs + 2 * first + kPack<T>, out[1], 2 * left - kPack<T>, aligned);
  }
};

}  // namespace polyphony::exec::kernels
