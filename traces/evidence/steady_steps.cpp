#include "traces/evidence/steady_steps.h"

#include <algorithm>
#include <cmath>

#include "traces/compare/spread.h"

namespace polyphony::traces {
namespace {

constexpr double kToSigma = 1.4826;       // MAD to σ, normal distribution
constexpr double kMedianToMean = 1.2533;  // √(π/2)

double distance(const std::vector<Seconds>& values, Seconds from) {
  std::vector<Seconds> away;
  for (const Seconds value : values) away.emplace_back(std::abs((value - from).count()));
  return kToSigma * median(std::move(away)).count();
}

}  // namespace

std::size_t warm_up(const std::vector<Seconds>& lines) {
  if (lines.size() < 2) return 0;
  const std::vector<Seconds> late(lines.begin() + static_cast<std::ptrdiff_t>(lines.size() / 2),
                                  lines.end());
  const Seconds typical = median(late);
  const Seconds most =
      typical + Seconds(std::max(kWarm * distance(late, typical), kLeastNoise * typical.count()));
  std::size_t count = 1;
  while (count < lines.size() / 2 && lines[count] > most) ++count;
  return count;
}

std::optional<Seconds> time_of(const LoggedStep& line, const StepWork& work) {
  if (line.time) return line.time;
  if (line.tokens_per_second_per_rank && work.tokens > 0 && work.ranks > 0)
    return Seconds(static_cast<double>(work.tokens) / work.ranks /
                   *line.tokens_per_second_per_rank);
  if (line.samples_per_second && work.samples > 0)
    return Seconds(static_cast<double>(work.samples) / *line.samples_per_second);
  return std::nullopt;
}

std::optional<SteadySteps> steady_steps(const std::vector<std::vector<LoggedStep>>& attempts,
                                        const StepWork& work) {
  SteadySteps result;
  std::vector<Seconds> kept;
  for (const std::vector<LoggedStep>& attempt : attempts) {
    std::vector<Seconds> lines;
    for (const LoggedStep& step : attempt)
      if (const auto time = time_of(step, work)) lines.push_back(*time);
    const std::size_t cold = warm_up(lines);
    result.left_out += static_cast<int>(cold);
    kept.insert(kept.end(), lines.begin() + static_cast<std::ptrdiff_t>(cold), lines.end());
  }
  if (kept.empty()) return std::nullopt;
  result.step = median(kept);
  result.used = static_cast<int>(kept.size());
  result.spread = distance(kept, result.step) / result.step.count();
  result.noise = std::max(
      kLeastNoise, kMedianToMean * result.spread / std::sqrt(static_cast<double>(kept.size())));
  return result;
}

}  // namespace polyphony::traces
