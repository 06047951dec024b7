#include "shared/chance/belief.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "shared/chance/effects.h"
#include "shared/chance/misses.h"
#include "shared/cost/cost_model.h"
#include "shared/error.h"
#include "shared/hardware/hardware_json.h"
#include "shared/statistics.h"

namespace polyphony {
namespace {

// Largest change of a parameter for a derivative.
constexpr double kLongestMove = 0.1;

double doublings(int x, int y) {
  return std::abs(std::log2(static_cast<double>(x) / static_cast<double>(y)));
}

HardwareProfile moved(const HardwareProfile& profile, const ParameterError& error, double share) {
  HardwareProfile result = profile;
  for (const auto& [key, change] : error) scale_parameter(result, key, 1 + share * change);
  return result;
}

}  // namespace

std::vector<std::vector<double>> effects_on_all(
    const std::function<std::vector<double>(const Moved&)>& logs, const HardwareProfile& profile) {
  const std::size_t errors = profile.certainty.errors.size();
  std::vector<std::vector<double>> effects;
  for (std::size_t k = 0; k < errors; ++k) {
    const ParameterError& error = profile.certainty.errors[k];
    double longest = 0;
    for (const auto& [key, change] : error) longest = std::max(longest, std::abs(change));
    if (longest == 0) continue;
    const double share = std::min(1.0, kLongestMove / longest);
    const auto at = [&](double by) {
      return logs([&](const HardwareProfile& of) { return moved(of, error, by); });
    };
    const std::vector<double> more = at(share), less = at(-share);
    effects.resize(more.size(), std::vector<double>(errors, 0.0));
    for (std::size_t i = 0; i < more.size(); ++i) effects[i][k] = (more[i] - less[i]) / (2 * share);
  }
  return effects;
}

std::vector<double> effects_on(const std::function<double(const Moved&)>& log_step,
                               const HardwareProfile& profile) {
  auto effects =
      effects_on_all([&](const Moved& move) { return std::vector{log_step(move)}; }, profile);
  if (effects.empty()) return std::vector<double>(profile.certainty.errors.size(), 0.0);
  return std::move(effects.front());
}

std::vector<double> step_effects(const Program& program, const Compiled& compiled,
                                 const Cluster& cluster, const HardwareProfile& profile) {
  Pricing pricing(program, compiled, cluster);
  return effects_on(
      [&](const Moved& move) {
        const CostTable costs = pricing.price(move(profile));
        const Seconds step = estimate_step(compiled, costs).step();
        return step.count() > 0 ? std::log(step.count()) : 0.0;
      },
      profile);
}

double Belief::parameters() const {
  double sum = 0;
  for (const double effect : effects) sum += effect * effect;
  return std::sqrt(sum);
}
double Belief::deviation() const { return std::hypot(parameters(), residual); }

Belief make_belief(Seconds step, std::vector<double> effects, const HardwareProfile& profile) {
  Belief belief{step, std::move(effects), 0, profile.certainty.freedom};
  if (profile.certainty.residual) {
    belief.residual = *profile.certainty.residual;
    return belief;
  }
  const double stated = std::log1p(profile.step_error) / central(0.9, belief.freedom);
  const double explained = belief.parameters();
  belief.residual = std::sqrt(std::max(0.0, stated * stated - explained * explained));
  return belief;
}

Belief make_belief(Seconds step, std::vector<double> effects, const HardwareProfile& profile,
                   const Scenario& scenario, const Layout& layout) {
  Belief belief = make_belief(step, std::move(effects), profile);
  const Misses misses(profile.certainty, scenario);
  if (!misses.any()) return belief;
  const MissAt miss = misses.at(layout);
  belief.residual = miss.left;
  for (std::size_t i = 0; i < miss.weights.size(); ++i) {
    const std::vector<double>& known = profile.certainty.misses[i].effects;
    for (std::size_t k = 0; k < std::min(known.size(), belief.effects.size()); ++k)
      belief.effects[k] -= miss.weights[i] * known[k];
  }
  return belief;
}

SecondsInterval interval(const Belief& belief, double probability) {
  const double reach = central(probability, belief.freedom) * belief.deviation();
  return {belief.step * std::exp(-reach), belief.step * std::exp(reach)};
}

bool Difference::tied() const { return seconds.low <= Seconds(0) && seconds.high >= Seconds(0); }

LayoutDistance common_distance(const Layout& a, const Layout& b) {
  LayoutDistance distance{doublings(a.microbatches, b.microbatches), 0};
  for (const bool differs :
       {a.placement != b.placement, a.schedule != b.schedule,
        a.encoder_microbatches != b.encoder_microbatches, a.encoder_order != b.encoder_order})
    distance.other += differs ? 1 : 0;
  return distance;
}

LayoutDistance module_distance(const ModuleLayout& x, const ModuleLayout& y) {
  return {doublings(x.cp, y.cp) + doublings(x.pp, y.pp) + doublings(x.vpp, y.vpp) +
              doublings(x.ep, y.ep) + doublings(x.dp(), y.dp()) + (x.sp != y.sp) +
              (x.tp_pieces != y.tp_pieces) + (x.shard != y.shard) + (x.recompute != y.recompute),
          doublings(x.tp, y.tp)};
}

LayoutDistance layout_distance(const Layout& a, const Layout& b) {
  POLYPHONY_CHECK(a.modules.size() == b.modules.size(), "layouts of two models");
  LayoutDistance most;
  for (std::size_t m = 0; m < a.modules.size(); ++m) {
    const LayoutDistance one = module_distance(a.modules[m], b.modules[m]);
    if (one.other + one.tensor > most.other + most.tensor) most = one;
  }
  return {common_distance(a, b).other + most.other, most.tensor};
}

double miss_variance(const Certainty& certainty, const LayoutDistance& distance) {
  const double error = certainty.layout_error.value();
  const double tensor = certainty.tensor_error.value_or(error);
  return error * error * distance.other + tensor * tensor * distance.tensor;
}

std::vector<double> difference_parts(const Belief& first, const Belief& second,
                                     const LayoutDistance& distance,
                                     const HardwareProfile& profile) {
  POLYPHONY_CHECK(first.effects.size() == second.effects.size(), "effects of two profiles");
  std::vector<double> parts;
  for (std::size_t k = 0; k < first.effects.size(); ++k) {
    const double apart = second.effects[k] - first.effects[k];
    parts.push_back(apart * apart);
  }
  double own = first.residual * first.residual + second.residual * second.residual;
  if (profile.certainty.layout_error) {
    const double apart = miss_variance(profile.certainty, distance);
    // Where steps were measured, less of the residuals is left.
    const bool whole = profile.certainty.residual && profile.certainty.misses.empty();
    own = whole ? apart : std::min(own, apart);
  }
  parts.push_back(own);
  return parts;
}

Difference compare_beliefs(const Belief& first, const Belief& second,
                           const LayoutDistance& distance, const HardwareProfile& profile) {
  Difference result;
  result.logarithm = std::log(second.step / first.step);
  const std::vector<double> parts = difference_parts(first, second, distance, profile);
  const double squares = std::accumulate(parts.begin(), parts.end(), 0.0);
  result.deviation = std::sqrt(squares);
  result.second_wins = squares > 0
                           ? student_below(-result.logarithm / result.deviation, first.freedom)
                           : (result.logarithm < 0 ? 1 : 0);
  const double reach = central(0.9, first.freedom) * result.deviation;
  result.seconds = {first.step * std::expm1(result.logarithm - reach),
                    first.step * std::expm1(result.logarithm + reach)};
  return result;
}

}  // namespace polyphony
