#include "shared/chance/misses.h"

#include <algorithm>
#include <cmath>

#include "shared/chance/belief.h"
#include "shared/chunk/parameters.h"
#include "shared/error.h"

namespace polyphony {
namespace {

using Matrix = std::vector<std::vector<double>>;

// Returns the lower triangular L with L Lᵀ = a, which is positive definite.
Matrix cholesky(const Matrix& a) {
  Matrix l(a.size(), std::vector<double>(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double rest = a[i][j];
      for (std::size_t k = 0; k < j; ++k) rest -= l[i][k] * l[j][k];
      POLYPHONY_CHECK(i != j || rest > 0, "misses without noise");
      l[i][j] = i == j ? std::sqrt(rest) : rest / l[j][j];
    }
  return l;
}

// Returns L⁻¹ y.
std::vector<double> solved(const Matrix& l, std::vector<double> y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) y[i] -= l[i][k] * y[k];
    y[i] /= l[i][i];
  }
  return y;
}
// Returns L⁻ᵀ y.
std::vector<double> solved_back(const Matrix& l, std::vector<double> y) {
  for (std::size_t i = y.size(); i-- > 0;) {
    for (std::size_t k = i + 1; k < y.size(); ++k) y[i] -= l[k][i] * y[k];
    y[i] /= l[i][i];
  }
  return y;
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

std::string measured_text(const Scenario& scenario) {
  std::string text;
  for (const Module& module : scenario.model.modules)
    text +=
        (text.empty() ? "" : ", ") + module.name + " " + std::to_string(parameter_count(module));
  return text + "; batches of " + std::to_string(scenario.data.global_batch) + " samples of " +
         std::to_string(scenario.data.sequence) + "; " + name(scenario.training.precision) +
         (scenario.training.fp8 == Fp8Scaling::off ? "" : ", fp8");
}

Layout compared_parts(const Layout& layout) {
  Layout parts;
  parts.placement = layout.placement;
  parts.schedule = layout.schedule;
  parts.microbatches = layout.microbatches;
  parts.encoder_microbatches = layout.encoder_microbatches;
  parts.encoder_order = layout.encoder_order;
  for (const ModuleLayout& module : layout.modules) {
    ModuleLayout& part = parts.modules.emplace_back();
    part.tp = module.tp;
    part.cp = module.cp;
    part.pp = module.pp;
    part.vpp = module.vpp;
    part.ep = module.ep;
    part.sp = module.sp;
    part.tp_pieces = module.tp_pieces;
    part.shard = module.shard;
    part.recompute = module.recompute;
    part.ranks = part.tp * part.cp * part.pp * module.dp();
  }
  return parts;
}

Misses::Misses(const Certainty& certainty, const std::string& measured) : certainty_(certainty) {
  // Far below the noise of any measured step: keeps K invertible where a layout was measured twice.
  constexpr double kLeastNoise = 1e-3;
  if (certainty.misses.empty() || !certainty.residual || *certainty.residual <= 0) return;
  for (std::size_t i = 0; i < certainty.misses.size(); ++i)
    if (certainty.misses[i].model == measured) places_.push_back(i);
  const std::size_t n = places_.size();
  Matrix all(n, std::vector<double>(n));
  std::vector<double> misses;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) all[i][j] = alike(known(i).layout, known(j).layout);
    const double noise = std::max(known(i).noise, kLeastNoise);
    all[i][i] += noise * noise;
    misses.push_back(known(i).miss);
  }
  lower_ = cholesky(all);
  surprise_ = solved(lower_, misses);
}

double Misses::alike(const Layout& a, const Layout& b) const {
  const double square = *certainty_.residual * *certainty_.residual;
  const LayoutDistance apart = layout_distance(a, b);
  if (!certainty_.layout_error) return apart.other + apart.tensor > 0 ? 0 : square;
  return square * std::exp(-miss_variance(certainty_, apart) / (2 * square));
}

MissAt Misses::at(const Layout& layout) const {
  const std::size_t n = places_.size();
  std::vector<double> with(n);
  for (std::size_t i = 0; i < n; ++i) with[i] = alike(known(i).layout, layout);
  const std::vector<double> half = solved(lower_, with);
  MissAt result{product(half, surprise_), 0, std::vector<double>(certainty_.misses.size(), 0.0)};
  const double left = *certainty_.residual * *certainty_.residual - product(half, half);
  const double freedom = certainty_.freedom;
  const double wider =
      freedom > 0 ? (freedom + product(surprise_, surprise_)) / (freedom + static_cast<double>(n))
                  : 1;
  result.left = std::sqrt(std::max(0.0, left) * wider);
  const std::vector<double> weights = solved_back(lower_, half);
  for (std::size_t i = 0; i < n; ++i) result.weights[places_[i]] = weights[i];
  return result;
}

double Misses::factor(const Layout& layout) const { return any() ? std::exp(at(layout).mean) : 1; }

// The weight of a single miss is between 0 and 1. Of several: |Σ w m| = |kᵀK⁻¹m| is at most
// √(kᵀK⁻¹k) √(mᵀK⁻¹m), of which the first factor is at most the residual.
double Misses::least_factor() const {
  if (!any()) return 1;
  if (places_.size() == 1) return std::exp(std::min(0.0, known(0).miss));
  return std::exp(-*certainty_.residual * std::sqrt(product(surprise_, surprise_)));
}

}  // namespace polyphony
