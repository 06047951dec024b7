// A step time with its interval, and two of them beside each other, from what a profile says of its
// own errors (shared/hardware/certainty.h). Logarithms throughout: a deviation of 0.1 is about 10 %.
//   effect_k  = change of ln(step) for one standard deviation of error k, everything re-priced:
//               central difference of the same compiled Program under estimate_step()
//   deviation = √(Σ effect² + residual²), the residual as the profile states it, or such that the
//               90 % interval is ± step_error where the parameters alone explain less
//   difference of A and B: √(Σ (effect_A - effect_B)² + own²). Parameters are shared and cancel.
//               own² = layout_error² · d + tensor_error² · t, d and t of layout_distance(A, B): what
//               a model misses, it misses alike in layouts that are alike, and each choice that
//               differs adds a miss of its own. A residual that only fills up to step_error bounds
//               it: no more than if the two were independent.
// Intervals and probabilities are of Student's t with the profile's degrees of freedom, whose scale
// is the deviation. The shipped profiles' widths are fitted to rows that no fit saw, and judged on
// others: shared/hardware/shipped_certainty.cpp. Does not model: errors that grow beyond the fitted
// ranges (shared/chance/extrapolation.h), skewed errors, kinks of the model inside a deviation.
#pragma once

#include <vector>

#include "shared/cost/cost.h"
#include "shared/hardware/hardware.h"

namespace polyphony {

struct Belief {
  Seconds step{};
  std::vector<double> effects;  // by HardwareProfile::certainty.errors
  double residual = 0;
  int freedom = 0;            // of Student's t; 0: normal
  double parameters() const;  // deviation that the effects make
  double deviation() const;
};

struct SecondsInterval {
  Seconds low{}, high{};
};

std::vector<double> step_effects(const Program& program, const Compiled& compiled,
                                 const Cluster& cluster, const HardwareProfile& profile);
Belief make_belief(Seconds step, std::vector<double> effects, const HardwareProfile& profile);
// The central interval that holds so much.
SecondsInterval interval(const Belief& belief, double probability = 0.9);

// How many doublings apart: |log2| of the ratio of microbatches, and of the module that differs
// most the sum of those of tp (by itself), cp, pp, dp, virtual stages and ep; one for every other
// choice that differs (assumed).
struct LayoutDistance {
  double other = 0, tensor = 0;
};
LayoutDistance layout_distance(const Layout& a, const Layout& b);

// Variances that make the deviation of the difference: by HardwareProfile::certainty.errors, then what
// the model misses of either layout, which no parameter says.
std::vector<double> difference_parts(const Belief& first, const Belief& second,
                                     const LayoutDistance& distance,
                                     const HardwareProfile& profile);

struct Difference {
  double logarithm = 0;  // ln(second / first): positive, the first is faster
  double deviation = 0;
  double second_wins = 0;     // P(the second is faster)
  SecondsInterval seconds{};  // 90 %, second - first
  bool tied() const;          // the interval holds zero
};
Difference compare_beliefs(const Belief& first, const Belief& second,
                           const LayoutDistance& distance, const HardwareProfile& profile);

}  // namespace polyphony
