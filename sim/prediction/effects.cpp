#include "sim/prediction/effects.h"

#include <algorithm>
#include <cmath>

#include "shared/text/figure_text.h"

namespace polyphony::sim {
namespace {

// Returns the name of an error. If it covers several parameters, that is the one with the largest
// change.
std::string error_name(const ParameterError& error) {
  const auto most = std::max_element(error.begin(), error.end(), [](const auto& a, const auto& b) {
    return std::abs(a.second) < std::abs(b.second);
  });
  if (most == error.end()) return "?";
  return most->first + (error.size() > 1 ? " and related parameters" : "");
}

}  // namespace

std::vector<double> step_effects(const PlannedLayout& planned, const Prediction& prediction) {
  const Cluster& cluster = planned.scenario().cluster;
  if (prediction.folded)
    return step_effects(prediction.program, prediction.compiled, cluster, planned.profile());
  const auto folded = predict_folded(planned);
  const Prediction* smallest = std::get_if<Prediction>(&folded);
  const Prediction& used = smallest != nullptr ? *smallest : prediction;
  return step_effects(used.program, used.compiled, cluster, planned.profile());
}

std::vector<double> step_effects(const Scenario& scenario, const Layout& layout,
                                 const Prediction& prediction, const HardwareProfile& profile) {
  return step_effects(plan_layout(borrow_inputs(scenario, profile), layout), prediction);
}

std::vector<std::string> largest_effects(const Belief& belief, const HardwareProfile& profile,
                                         std::size_t most) {
  std::vector<std::size_t> order(belief.effects.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(belief.effects[a]) > std::abs(belief.effects[b]);
  });
  constexpr double kVisible = 0.0005;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(most, order.size()); ++i) {
    const double effect = std::abs(belief.effects[order[i]]);
    if (effect < kVisible) break;
    lines.push_back(error_name(profile.certainty.errors[order[i]]) + " " + percent_text(effect));
  }
  return lines;
}

}  // namespace polyphony::sim
