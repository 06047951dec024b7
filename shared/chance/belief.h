// Prediction intervals of a step time, and comparisons of two step times, from the errors that a
// profile states (shared/hardware/certainty.h). All errors are of logarithms: a deviation of 0.1 is
// about 10 %.
//
//   effect_k    change of ln(step) for one standard deviation of error k, with everything priced
//               again: central difference of the same compiled Program under estimate_step()
//   residual    what no parameter explains: the profile's, if it states one. Otherwise it is chosen
//               so that the 90 % interval is ± step_error, and 0 if the effects alone exceed that.
//   deviation   of one step: √(Σ effect_k² + residual²)
//   difference  deviation of ln(step_B / step_A): √(Σ (effect_k,A - effect_k,B)² + own²). An error
//               of a parameter moves both steps, so that it cancels as far as its effects are
//               equal.
//
// own² is the part of that variance that no parameter explains. What the model misses is similar in
// similar layouts, and each choice in which they differ adds to it:
//   own² = layout_error² · other + tensor_error² · tensor, with layout_distance(A, B) = {other,
//          tensor}
//   If the profile states no residual, or knows misses, own² is at most residual_A² + residual_B²,
//   as if the two were independent. If it states no layout_error, own² is that sum.
//
// Intervals and probabilities are of Student's t with the profile's degrees of freedom, scaled by
// the deviation. The widths of the shipped profiles are fitted to rows that no other fit used, and
// are judged on further rows: shared/hardware/shipped_certainty.cpp.
//
// Does not model: errors that grow beyond the fitted ranges (shared/chance/extrapolation.h), skewed
// errors, kinks of the model within a deviation.
#pragma once

#include <vector>

#include "shared/cost/cost.h"
#include "shared/hardware/hardware.h"

namespace polyphony {

struct Scenario;

struct Belief {
  Seconds step{};
  std::vector<double> effects;  // one per entry of HardwareProfile::certainty.errors
  double residual = 0;
  int freedom = 0;            // degrees of freedom of Student's t; 0: normal distribution
  double parameters() const;  // deviation due to the effects alone
  double deviation() const;
};

struct SecondsInterval {
  Seconds low{}, high{};
};

// Returns the effect of each error of the profile on the step.
std::vector<double> step_effects(const Program& program, const Compiled& compiled,
                                 const Cluster& cluster, const HardwareProfile& profile);
Belief make_belief(Seconds step, std::vector<double> effects, const HardwareProfile& profile);
// The same for a layout of which the profile may know misses (shared/chance/misses.h): `step` is
// the prediction that includes them.
Belief make_belief(Seconds step, std::vector<double> effects, const HardwareProfile& profile,
                   const Scenario& scenario, const Layout& layout);
// Returns the central interval that contains the step with the given probability.
SecondsInterval interval(const Belief& belief, double probability = 0.9);

// The distance of two layouts, in doublings. `other` adds up |log2| of the ratio of microbatches;
// for the module that differs most, those of cp, pp, dp, virtual stages and ep; and one for every
// other choice that differs (assumed). `tensor` is |log2| of the ratio of tp.
struct LayoutDistance {
  double other = 0, tensor = 0;
};
LayoutDistance layout_distance(const Layout& a, const Layout& b);
// Return its parts: of what all modules have in common, and of one module's grids.
LayoutDistance common_distance(const Layout& a, const Layout& b);
LayoutDistance module_distance(const ModuleLayout& a, const ModuleLayout& b);
// Returns the variance by which the misses of two layouts differ. The profile must state a
// layout_error.
double miss_variance(const Certainty& certainty, const LayoutDistance& distance);

// Returns the variances that add up to the squared deviation of the difference: one per entry of
// HardwareProfile::certainty.errors, then that of the model's own misses, which no parameter
// explains.
std::vector<double> difference_parts(const Belief& first, const Belief& second,
                                     const LayoutDistance& distance,
                                     const HardwareProfile& profile);

struct Difference {
  double logarithm = 0;  // ln(second / first); positive: the first is faster
  double deviation = 0;
  double second_wins = 0;     // P(the second is faster)
  SecondsInterval seconds{};  // 90 %, second - first
  bool tied() const;          // the interval contains zero
};
Difference compare_beliefs(const Belief& first, const Belief& second,
                           const LayoutDistance& distance, const HardwareProfile& profile);

}  // namespace polyphony
