#include "traces/calibrate/merge_profiles.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "shared/error.h"
#include "shared/hardware/hardware_json.h"
#include "shared/hardware/parameter.h"
#include "traces/calibrate/posterior.h"

namespace polyphony::traces {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kFloor = 1e-10;      // variance of a direction that no error affects
constexpr double kNegligible = 1e-4;  // relative; as in certainty.cpp

using Keys = std::vector<std::string>;

std::set<std::string> known_keys(const HardwareProfile& profile) {
  std::set<std::string> keys;
  for (const ParameterError& error : profile.certainty.errors)
    for (const auto& [key, change] : error)
      if (change != 0 && parameter(profile, key) > 0) keys.insert(key);
  return keys;
}

// Precision matrix of the logarithms, indexed by all keys; zero where the profile states no error.
MatrixXd precision(const HardwareProfile& profile, const Keys& all) {
  const std::set<std::string> known = known_keys(profile);
  std::vector<Index> at;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (known.contains(all[i])) at.push_back(static_cast<Index>(i));
  const auto n = static_cast<Index>(at.size());
  MatrixXd covariance = kFloor * MatrixXd::Identity(n, n);
  for (const ParameterError& error : profile.certainty.errors) {
    VectorXd d = VectorXd::Zero(n);
    for (Index i = 0; i < n; ++i)
      if (const auto found =
              error.find(all[static_cast<std::size_t>(at[static_cast<std::size_t>(i)])]);
          found != error.end())
        d(i) = found->second;
    covariance += d * d.transpose();
  }
  const MatrixXd inverse = covariance.ldlt().solve(MatrixXd::Identity(n, n));
  const auto size = static_cast<Index>(all.size());
  MatrixXd result = MatrixXd::Zero(size, size);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j)
      result(at[static_cast<std::size_t>(i)], at[static_cast<std::size_t>(j)]) = inverse(i, j);
  return result;
}

VectorXd logarithms(const HardwareProfile& profile, const Keys& all) {
  VectorXd values(static_cast<Index>(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double value = parameter(profile, all[i]);
    values(static_cast<Index>(i)) = value > 0 ? std::log(value) : 0;
  }
  return values;
}

void hull(std::optional<FittedRange>& into, const std::optional<FittedRange>& other) {
  if (!other) return;
  if (!into) into = other;
  into->low = std::min(into->low, other->low);
  into->high = std::max(into->high, other->high);
}

// Writes the second profile with the numbers of the first: remaining differences are switches and
// names.
void require_alike(const HardwareProfile& first, const HardwareProfile& second) {
  const auto refuse = [&](const std::string& what) {
    throw InputError(second.name, "", "its " + what + " differs from that of " + first.name,
                     "merge profiles of one device under one software stack");
  };
  if (first.device != second.device) refuse("device");
  if (first.stack.name != second.stack.name) refuse("software stack");
  if (first.collectives != second.collectives ||
      first.counts_on_device != second.counts_on_device ||
      first.products_wait != second.products_wait || first.layer_times != second.layer_times)
    refuse("set of switches or measured layers");
}

}  // namespace

HardwareProfile merge_profiles(const HardwareProfile& first, const HardwareProfile& second,
                               const std::optional<HardwareProfile>& origin,
                               const std::string& name) {
  require_alike(first, second);
  if (origin) require_alike(first, *origin);
  std::set<std::string> known = known_keys(first);
  known.merge(known_keys(second));
  const Keys all(known.begin(), known.end());
  HardwareProfile merged = first;
  merged.name = name;
  merged.source = "merged: " + first.name + " and " + second.name +
                  (origin ? ", both from " + origin->name : "");
  if (all.empty()) return merged;
  MatrixXd together = precision(first, all) + precision(second, all);
  VectorXd pull = precision(first, all) * logarithms(first, all) +
                  precision(second, all) * logarithms(second, all);
  if (origin) {
    together -= precision(*origin, all);
    pull -= precision(*origin, all) * logarithms(*origin, all);
  }
  const Eigen::LLT<MatrixXd> root(together);
  if (root.info() != Eigen::Success)
    throw InputError(origin ? origin->name : name, "",
                     "states smaller errors than the profiles calibrated from it",
                     "give the profile from which both were calibrated, or none");
  const VectorXd mean = root.solve(pull);
  const auto n = static_cast<Index>(all.size());
  const MatrixXd covariance = root.solve(MatrixXd::Identity(n, n));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double value = parameter(first, all[i]);
    if (!(value > 0)) continue;
    const ParameterRange range = parameter_range(first, all[i]);
    const double wanted = std::clamp(std::exp(mean(static_cast<Index>(i))), range.low, range.high);
    scale_parameter(merged, all[i], wanted / value);
  }
  std::vector<double> flat;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) flat.push_back((covariance(i, j) + covariance(j, i)) / 2);
  const std::vector<double> ways = independent_ways(flat);
  Certainty& certainty = merged.certainty;
  certainty.errors.clear();
  certainty.misses.clear();  // they are of the parameters of one profile
  for (std::size_t way = 0; way < all.size(); ++way) {
    ParameterError error;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (const double change = ways[i * all.size() + way]; std::abs(change) >= kNegligible)
        error[all[i]] = std::round(change * 1e6) / 1e6;
    if (!error.empty()) certainty.errors.push_back(std::move(error));
  }
  certainty.source = merged.source;
  certainty.footing = Footing::stated;
  if (const auto& other = second.certainty.residual)
    certainty.residual = std::max(certainty.residual.value_or(0), *other);
  for (auto FittedRanges::* range : {&FittedRanges::gemm_size, &FittedRanges::message_bytes,
                                     &FittedRanges::collective_bytes, &FittedRanges::ranks})
    hull(certainty.fitted.*range, second.certainty.fitted.*range);
  if (const auto& other = second.certainty.jitter;
      other && (!certainty.jitter || other->steps > certainty.jitter->steps))
    certainty.jitter = other;
  merged.step_error = std::max(first.step_error, second.step_error);
  return merged;
}

}  // namespace polyphony::traces
