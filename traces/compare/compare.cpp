#include "traces/compare/compare.h"

#include <algorithm>
#include <cmath>

#include "shared/error.h"
#include "traces/compare/activity.h"

namespace polyphony::traces {
namespace {

Part part_of_op(const Op& op) {
  if (const auto* compute = std::get_if<Compute>(&op.what)) return part_of(compute->phase);
  if (std::holds_alternative<Exchange>(op.what)) return Part::exchange;
  if (std::holds_alternative<HostCopy>(op.what)) return Part::host;
  const auto* collective = std::get_if<Collective>(&op.what);
  return collective != nullptr && collective->params.valid() ? Part::all_reduce : Part::optimizer;
}

std::vector<PartComparison> compare_parts(const PartTimes& predicted, const PartTimes& measured,
                                          Seconds step) {
  std::vector<PartComparison> rows;
  for (std::size_t p = 0; p < kParts; ++p) {
    PartComparison row{static_cast<Part>(p), predicted[p], measured[p], std::nullopt, 0};
    const Seconds difference = predicted[p] - measured[p];
    if (measured[p] > Seconds{}) row.error = difference / measured[p];
    if (step > Seconds{}) row.share_error = difference / step;
    rows.push_back(row);
  }
  return rows;
}

// Median over the steps, by rank and part.
std::vector<PartTimes> median_parts(const std::vector<ComparedStep>& steps,
                                    const Timeline& (*which)(const ComparedStep&)) {
  std::vector<std::vector<PartTimes>> all;
  for (const ComparedStep& step : steps) all.push_back(part_times(step.program, which(step)));
  std::vector<PartTimes> result(all.front().size());
  for (std::size_t rank = 0; rank < result.size(); ++rank) {
    for (std::size_t p = 0; p < kParts; ++p) {
      std::vector<Seconds> values;
      for (const auto& step : all) values.push_back(step[rank][p]);
      result[rank][p] = median(std::move(values));
    }
  }
  return result;
}

}  // namespace

Part part_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return Part::forward;
    case Phase::backward:
    case Phase::backward_input:
    case Phase::backward_weight:
      return Part::backward;
    case Phase::recompute:
      return Part::recompute;
  }
  return Part::forward;
}

std::vector<PartTimes> part_times(const Program& program, const Timeline& timeline) {
  const Activity activity = find_activity(program, timeline);
  using Intervals = std::array<std::vector<Interval>, kParts>;
  std::vector<Intervals> at_work(program.ranks);
  std::vector<std::vector<Interval>> computing(program.ranks);
  for (std::size_t id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    const auto rank = program.rank_of(op).value;
    const Part part = part_of_op(op);
    const bool on_compute =
        part == Part::optimizer || program.streams[op.stream.value].kind == StreamKind::compute;
    for (auto i = activity.of[id].begin; i < activity.of[id].end; ++i) {
      at_work[rank][static_cast<std::size_t>(part)].push_back(activity.intervals[i]);
      if (on_compute) computing[rank].push_back(activity.intervals[i]);
    }
  }
  std::vector<PartTimes> result(program.ranks);
  for (std::size_t rank = 0; rank < result.size(); ++rank) {
    for (std::size_t p = 0; p < kParts; ++p) result[rank][p] = union_length(at_work[rank][p]);
    result[rank][static_cast<std::size_t>(Part::idle)] =
        std::max(Seconds{}, timeline.makespan - union_length(computing[rank]));
  }
  return result;
}

PartTimes mean(const std::vector<PartTimes>& ranks) {
  PartTimes sum{};
  for (const PartTimes& rank : ranks) {
    for (std::size_t p = 0; p < kParts; ++p) sum[p] += rank[p] / static_cast<double>(ranks.size());
  }
  return sum;
}

std::vector<Part> parts_shown(const std::vector<PartTimes>& ranks) {
  const auto there = [&](std::size_t part) {
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](const PartTimes& parts) { return parts[part] > Seconds{}; });
  };
  std::vector<Part> shown;
  for (std::size_t p = 0; p < kParts; ++p) {
    const auto part = static_cast<Part>(p);
    if ((part != Part::recompute && part != Part::host) || there(p)) shown.push_back(part);
  }
  return shown;
}

Rank critical_rank(const std::vector<PartTimes>& ranks) {
  constexpr auto kIdle = static_cast<std::size_t>(Part::idle);
  constexpr double kTie = 1e-9;  // rounding must not decide
  std::size_t best = 0;
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    if (ranks[rank][kIdle] < ranks[best][kIdle] * (1 - kTie)) best = rank;
  }
  return Rank(best);
}

Verdict Comparison::verdict(double tolerance) const {
  if (std::abs(step_error) > std::max(tolerance, 2 * repeatability())) return Verdict::outside;
  return repeatability() > tolerance ? Verdict::unknown : Verdict::within;
}

Comparison compare(const std::vector<ComparedStep>& steps) {
  POLYPHONY_CHECK(!steps.empty(), "no measured step");
  Comparison result;
  std::vector<Seconds> predicted, measured, equal;
  std::vector<RecordedStep> recorded;
  for (const ComparedStep& step : steps) {
    predicted.push_back(step.predicted.makespan);
    measured.push_back(step.measured.makespan);
    recorded.push_back({&step.program, &step.measured});
  }
  result.predicted_step = median(predicted);
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (predicted[s] > Seconds{})
      equal.push_back(result.predicted_step * (measured[s] / predicted[s]));
  result.measured_step = spread(std::move(measured));
  result.of_equal_batches = spread(std::move(equal));
  const Seconds step = result.measured_step.median;
  if (step > Seconds{}) result.step_error = (result.predicted_step - step) / step;

  result.shared_cores = find_shared_cores(recorded);
  const std::vector<PartTimes> predicted_parts = median_parts(
      steps, +[](const ComparedStep& one) -> const Timeline& { return one.predicted; });
  const std::vector<PartTimes> measured_parts =
      median_parts(steps, +[](const ComparedStep& one) -> const Timeline& { return one.measured; });
  result.average = compare_parts(mean(predicted_parts), mean(measured_parts), step);
  result.critical = critical_rank(measured_parts);
  result.on_critical = compare_parts(predicted_parts[result.critical.value],
                                     measured_parts[result.critical.value], step);
  return result;
}

}  // namespace polyphony::traces
