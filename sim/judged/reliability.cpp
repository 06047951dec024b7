#include "sim/judged/reliability.h"

#include <cmath>

#include "shared/statistics.h"
#include "sim/judged/coverage.h"

namespace polyphony::sim {
namespace {

constexpr double kBins[] = {0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1};

// Returns the error by a fit without the row's family; nullopt for rows that only other folds
// excluded.
std::optional<double> unseen_error(const RowResult& result,
                                   const std::optional<HeldOut>& held_out) {
  if (!result.belief) return std::nullopt;
  if (held_out) {
    bool seen = false;
    for (const auto& [fold, errors] : held_out->unseen) {
      const auto found = errors.find(result.row.id);
      if (found == errors.end()) continue;
      if (fold == "family_out") return found->second;
      seen = true;
    }
    if (seen) return std::nullopt;
  }
  return std::log1p(*result.error);
}

// Returns the standard deviation of the difference of two rows; errors that they share cancel.
double deviation(const RowResult& first, const RowResult& second, const LayoutDistance& distance,
                 const std::optional<HeldOut>& held_out) {
  HardwareProfile profile;
  profile.certainty = first.certainty;
  Belief a = *first.belief, b = *second.belief;
  if (held_out && held_out->widths) {
    const auto without = held_out->without_family.find(first.row.family);
    const Widths& widths =
        without != held_out->without_family.end() ? without->second : *held_out->widths;
    profile.certainty.layout_error = widths.layout;
    profile.certainty.tensor_error = widths.tensor;
  }
  double squares = 0;
  for (const double part : difference_parts(a, b, distance, profile)) squares += part;
  return std::sqrt(squares);
}

}  // namespace

std::vector<JudgedPair> judge_pairs(const std::vector<RowResult>& results,
                                    const std::optional<HeldOut>& held_out) {
  std::vector<JudgedPair> judged;
  for (const Pair& pair : find_pairs(results)) {
    const RowResult &first = results[pair.first], &second = results[pair.second];
    const auto a = unseen_error(first, held_out), b = unseen_error(second, held_out);
    if (!a || !b || first.belief->effects.size() != second.belief->effects.size()) continue;
    const double measured = std::log(second.measured_step / first.measured_step);
    const double predicted = measured + *b - *a;
    const double scale = deviation(first, second, pair.distance, held_out);
    if (measured == 0 || scale <= 0) continue;
    const int freedom = first.belief->freedom;
    JudgedPair result;
    result.block = first.row.block;
    result.stated = student_below(std::abs(predicted) / scale, freedom);
    result.happened = (predicted > 0) == (measured > 0);
    result.tied = std::abs(predicted) <= central(0.9, freedom) * scale;
    for (std::size_t i = 0; i < kShares.size(); ++i)
      result.inside[i] = std::abs(*b - *a) <= central(kShares[i], freedom) * scale;
    judged.push_back(result);
  }
  return judged;
}

std::vector<ReliabilityBin> reliability(const std::vector<JudgedPair>& pairs) {
  std::vector<ReliabilityBin> bins;
  for (std::size_t i = 0; i + 1 < std::size(kBins); ++i) {
    ReliabilityBin bin{kBins[i], kBins[i + 1]};
    const bool last = i + 2 == std::size(kBins);
    for (const JudgedPair& pair : pairs) {
      if (pair.stated < bin.low || (pair.stated >= bin.high && !last)) continue;
      ++bin.pairs;
      bin.stated += pair.stated;
      bin.happened += pair.happened;
    }
    if (bin.pairs == 0) continue;
    bin.stated /= static_cast<double>(bin.pairs);
    bin.happened /= static_cast<double>(bin.pairs);
    bins.push_back(bin);
  }
  return bins;
}

}  // namespace polyphony::sim
