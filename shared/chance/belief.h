// A step time with its interval, and two of them beside each other, from what a profile says of its
// own errors (shared/hardware/certainty.h). Logarithms throughout: a deviation of 0.1 is about 10 %.
//   effect_k  = change of ln(step) for one standard deviation of error k, everything re-priced:
//               central difference of the same compiled Program under estimate_step()
//   deviation = √(Σ effect² + residual²), residual such that the 90 % interval is ± step_error
//               where the parameters alone explain less
//   difference of A and B: √(Σ (effect_A - effect_B)² + own²). Parameters are shared and cancel.
//               own = layout_error · layout_distance(A, B), at most as if the residuals were
//               independent: what a model misses, it misses alike in layouts that are alike.
// step_error is read as the half width of a 90 % interval: of the published rows that the shipped
// profiles are judged on, 90 % lie within 10 to 17 % (A100), 15 % (H100), 7 % (B200) of the
// prediction, where the profiles state 15, 20 and 20 % (polyphony validate).
// layout_error of the shipped profiles, 0.022: 334 pairs of one model, devices, batch and sequence
// in vTrain's rows (A100); the median difference of their misses grows as 4, 7, 14, 27 % over
// distances of 2, 4, 6, 8 (as deviations of a normal). Five such pairs of B200 agree. Does not
// model: errors that grow beyond the fitted ranges (shared/chance/extrapolation.h), skewed errors,
// kinks of the model inside a deviation.
#pragma once

#include <vector>

#include "shared/cost/cost.h"
#include "shared/hardware/hardware.h"

namespace polyphony {

struct Belief {
  Seconds step{};
  std::vector<double> effects;  // by HardwareProfile::certainty.errors
  double residual = 0;
  double parameters() const;  // deviation that the effects make
  double deviation() const;
};

struct SecondsInterval {
  Seconds low{}, high{};
};

std::vector<double> step_effects(const Program& program, const Compiled& compiled,
                                 const Cluster& cluster, const HardwareProfile& profile);
Belief make_belief(Seconds step, std::vector<double> effects, const HardwareProfile& profile);
SecondsInterval interval(const Belief& belief);  // 90 %

// How many doublings apart: |log2| of the ratio of microbatches, and of the module that differs
// most the sum of those of tp, cp, pp, dp, virtual stages and ep; one for every other choice that
// differs (assumed).
double layout_distance(const Layout& a, const Layout& b);

// Variances that make the deviation of the difference: by HardwareProfile::certainty.errors, then what
// the model misses of either layout, which no parameter says.
std::vector<double> difference_parts(const Belief& first, const Belief& second, double distance,
                                     const HardwareProfile& profile);

struct Difference {
  double logarithm = 0;  // ln(second / first): positive, the first is faster
  double deviation = 0;
  double second_wins = 0;     // P(the second is faster)
  SecondsInterval seconds{};  // 90 %, second - first
  bool tied() const;          // the interval holds zero
};
Difference compare_beliefs(const Belief& first, const Belief& second, double distance,
                           const HardwareProfile& profile);

}  // namespace polyphony
