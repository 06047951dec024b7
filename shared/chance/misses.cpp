#include "shared/chance/misses.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "shared/chance/belief.h"
#include "shared/chunk/parameters.h"
#include "shared/error.h"
#include "shared/scenario/typical_batch.h"
#include "shared/text/quantity_text.h"

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

// A sum of differences of logarithms, and of choices that differ. Both have as many modules.
LayoutDistance mean_distance(const Layout& a, const Layout& b) {
  LayoutDistance distance = common_distance(a, b);
  distance.other += (a.bridge != b.bridge ? 1 : 0) + (a.planner != b.planner ? 1 : 0);
  const auto modules = static_cast<double>(a.modules.size());
  for (std::size_t m = 0; m < a.modules.size(); ++m) {
    const ModuleLayout &x = a.modules[m], &y = b.modules[m];
    LayoutDistance one = module_distance(x, y);
    for (const bool differs :
         {x.shard_ranks != y.shard_ranks, x.offload_activations != y.offload_activations,
          x.expert_tp != y.expert_tp, x.tokens != y.tokens, x.cp_attention != y.cp_attention,
          x.cp_heads != y.cp_heads, x.row_split != y.row_split, x.spread != y.spread})
      one.other += differs ? 1 : 0;
    distance.other += one.other / modules;
    distance.tensor += one.tensor / modules;
  }
  return distance;
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
    text += (text.empty() ? "" : ", ") + module.name + " " +
            std::to_string(parameter_count(module)) + " " + name(module.trainable);
  std::map<Modality, std::int64_t> tokens;
  for (const Sample& sample : typical_batch(scenario).samples)
    for (const Item& item : sample.items) tokens[item.modality] += item.tokens;
  text += "; " + std::to_string(scenario.data.global_batch) + " samples";
  for (const auto& [modality, count] : tokens)
    text += std::string(", ") + name(modality) + " " + std::to_string(count);
  text += std::string("; ") + name(scenario.training.precision);
  if (scenario.training.fp8 != Fp8Scaling::off)
    text += std::string(", fp8 ") + name(scenario.training.fp8);
  const Cluster& cluster = scenario.cluster;
  return text + "; " + std::to_string(cluster.ranks_per_node) + " " + cluster.device.name +
         " a node, " + to_text(cluster.node_link.rate) + ", " + to_text(cluster.fabric_link.rate);
}

Layout compared_parts(const Layout& layout) {
  Layout parts = layout;
  parts.balance = Layout{}.balance;
  parts.placements = Layout{}.placements;
  parts.actions.clear();
  for (ModuleLayout& module : parts.modules) {
    const ModuleLayout usual;
    module.first_rank = usual.first_rank;
    module.recompute_blocks.clear();
    module.blocks.clear();
    module.ahead = usual.ahead;
    module.sub_microbatch = usual.sub_microbatch;
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
  if (a.modules.size() != b.modules.size()) return 0;  // of another model
  const double square = *certainty_.residual * *certainty_.residual;
  const LayoutDistance apart = mean_distance(a, b);
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
