#include "sim/judged/coverage.h"

#include <algorithm>
#include <cmath>

#include "shared/error.h"
#include "shared/hardware/shipped_certainty.h"
#include "shared/statistics.h"

namespace polyphony::sim {
namespace {

Footing footing_of_fold(const std::string& fold) {
  if (fold == "stack_out") return Footing::foreign;
  if (fold == "device_out") return Footing::borrowed;
  return Footing::known;
}

Claim claim_of(const RowResult& result, Footing footing, double error,
               const std::optional<HeldOut>& held_out) {
  Claim claim{result.row.id,          result.row.block, footing, error, result.belief->deviation(),
              result.belief->freedom, std::nullopt};
  if (!held_out || !held_out->widths) return claim;
  const auto without = held_out->without_block.find(claim.block);
  const Widths& widths =
      without != held_out->without_block.end() ? without->second : *held_out->widths;
  claim.scale = scale_of(result, footing, widths);
  claim.one_width = widths.one;
  return claim;
}

double score(const Claim& claim, double scale) {
  const double reach = central(kScored, claim.freedom) * scale;
  return interval_score(-reach, reach, claim.error);
}

Coverage judge(const std::vector<const Claim*>& claims) {
  Coverage result;
  result.rows = claims.size();
  std::vector<double> reaches, misses;
  double one_width = 0;
  bool all_have_one_width = true;
  for (const Claim* claim : claims) {
    for (std::size_t i = 0; i < kShares.size(); ++i)
      result.inside[i] +=
          std::abs(claim->error) <= central(kShares[i], claim->freedom) * claim->scale;
    reaches.push_back(central(kScored, claim->freedom) * claim->scale);
    misses.push_back(std::abs(claim->error));
    result.score += score(*claim, claim->scale);
    all_have_one_width = all_have_one_width && claim->one_width;
    if (claim->one_width) one_width += score(*claim, *claim->one_width);
  }
  const auto n = static_cast<double>(result.rows);
  for (std::size_t i = 0; i < kShares.size(); ++i)
    result.chance[i] = binomial_test(static_cast<std::int64_t>(result.inside[i]),
                                     static_cast<std::int64_t>(result.rows), kShares[i]);
  result.half_width = median(reaches);
  result.median = median(misses);
  result.score /= n;
  if (all_have_one_width) result.one_width_score = one_width / n;
  return result;
}

}  // namespace

double scale_of(const RowResult& result, Footing footing, const Widths& widths) {
  const double residual = residual_on(footing, {widths.known, widths.foreign, widths.borrowed});
  double squares = residual * residual;
  for (std::size_t k = 0; k < result.belief->effects.size(); ++k) {
    const auto& [key, error] = *result.certainty.errors[k].begin();
    const double times = key == "grouped_efficiency" && error > 0 ? widths.experts / error : 1;
    squares += times * times * result.belief->effects[k] * result.belief->effects[k];
  }
  return std::sqrt(squares);
}

double interval_score(double low, double high, double value) {
  POLYPHONY_CHECK(low <= high, low << " to " << high);
  const double outside = std::max({0.0, low - value, value - high});
  return high - low + 2 / (1 - kScored) * outside;
}

std::vector<Claim> claims_of(const std::vector<RowResult>& results,
                             const std::optional<HeldOut>& held_out) {
  std::vector<Claim> claims;
  for (const RowResult& result : results) {
    if (!result.counts() || !result.belief) continue;
    bool left_out = false;
    if (held_out)
      for (const auto& [fold, errors] : held_out->unseen)
        if (const auto found = errors.find(result.row.id); found != errors.end()) {
          left_out = true;
          claims.push_back(claim_of(result, footing_of_fold(fold), found->second, held_out));
        }
    if (!left_out)
      claims.push_back(
          claim_of(result, result.certainty.footing, std::log1p(*result.error), held_out));
  }
  return claims;
}

std::vector<Coverage> coverage(const std::vector<Claim>& claims) {
  std::vector<const Claim*> all;
  std::map<Footing, std::vector<const Claim*>> by_footing;
  std::map<std::pair<Footing, std::string>, std::vector<const Claim*>> by_block;
  for (const Claim& claim : claims) {
    all.push_back(&claim);
    by_footing[claim.footing].push_back(&claim);
    by_block[{claim.footing, claim.block}].push_back(&claim);
  }
  std::vector<Coverage> table;
  const auto add = [&](const std::string& block, std::optional<Footing> footing,
                       const std::vector<const Claim*>& rows) {
    table.push_back(judge(rows));
    table.back().block = block;
    table.back().footing = footing;
  };
  for (const auto& [key, rows] : by_block) add(key.second, key.first, rows);
  for (const auto& [footing, rows] : by_footing) add("", footing, rows);
  if (by_footing.size() > 1) add("", std::nullopt, all);
  return table;
}

}  // namespace polyphony::sim
