// Changes the sample rate of a clip by a polyphase filter: a sinc times a Kaiser window, each
// output being a weighted sum of the inputs around its time.
//   y[n] = Σ_k x[k] h(n · from/to − k),  h(t) = c · sinc(c t) · w(c t / 48)
//   c = 0.95 · min(1, to/from): the cutoff, relative to the input's Nyquist frequency
//   w: Kaiser window of β = 7.86, zero beyond 48 zeros of the sinc
// By Kaiser's formulas it passes frequencies up to 0.9 of the lower Nyquist frequency and
// attenuates those above that frequency by 80 dB. Weights are scaled so that a constant keeps its
// value. Beyond the clip's ends there are zeros. The result does not depend on the number of
// threads.
// Source: Kaiser, "Nonrecursive digital filter design using the I0-sinh window function", 1974.
#pragma once

#include <cstdint>
#include <vector>

namespace polyphony::exec {

// Returns ⌈size · to / from⌉ samples, of which the first has the time of the first input.
std::vector<float> resample(const std::vector<float>& samples, std::int64_t from, std::int64_t to);

}  // namespace polyphony::exec
