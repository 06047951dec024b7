#include "traces/calibrate/jitter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "shared/cost/cost_model.h"
#include "shared/error.h"
#include "traces/compare/activity.h"
#include "traces/compare/spread.h"

namespace polyphony::traces {
namespace {

constexpr std::size_t kLeastSteps = 3;  // after the first

// Log ratios of one activity by step, and its duration.
struct Row {
  std::vector<double> ratios;
  double weight = 0;
};
using ActivityRows = std::array<std::vector<Row>, kActivityKinds>;

std::optional<ActivityKind> kind_of(const Op& op) {
  if (const auto* exchange = std::get_if<Exchange>(&op.what))
    return exchange->sends ? std::nullopt : std::optional(ActivityKind::message);
  if (const auto* collective = std::get_if<Collective>(&op.what))
    return collective->params.valid() ? std::optional(ActivityKind::collective) : std::nullopt;
  if (std::holds_alternative<HostCopy>(op.what)) return {};
  return ActivityKind::compute;
}

// Modeled seconds by op: the time of its first or last node (one of them takes time).
std::vector<double> modelled(const Program& program, const Cluster& cluster,
                             const HardwareProfile& profile) {
  auto outcome = compile(program);
  POLYPHONY_CHECK(std::holds_alternative<Compiled>(outcome), "a measured Program cannot run");
  const Compiled& compiled = std::get<Compiled>(outcome);
  const CostTable costs = price(program, compiled, cluster, profile);
  std::vector<double> times(program.ops.size());
  for (std::size_t op = 0; op < times.size(); ++op)
    times[op] = std::max(unshared_time(costs, compiled.op_start[op]),
                         unshared_time(costs, compiled.op_end[op]))
                    .count();
  return times;
}

void add_rows(const MeasuredRun& run, const HardwareProfile& profile, ActivityRows& rows) {
  const Program& program = *run.program;
  const std::vector<std::uint32_t> sets = rendezvous_sets(program);
  std::vector<std::vector<OpId>> members(program.ops.size());
  for (std::size_t op = 0; op < sets.size(); ++op) members[sets[op]].push_back(OpId(op));
  std::vector<std::vector<double>> models;
  for (const Program* of_step : run.step_programs)
    models.push_back(modelled(*of_step, run.cluster, profile));
  std::vector<Activity> steps;
  for (const Timeline& step : run.steps) steps.push_back(find_activity(program, step));
  for (std::size_t op = 0; op < members.size(); ++op) {
    const auto kind = kind_of(program.ops[op]);
    if (members[op].empty() || !kind) continue;
    Row row;
    std::vector<Seconds> times;
    for (std::size_t s = 1; s < steps.size(); ++s) {
      const std::optional<Seconds> time = time_at_work(steps[s], members[op]);
      if (!time || time->count() <= 0) break;
      const double model = models.empty() ? 1 : models[s][op];
      row.ratios.push_back(std::log(time->count()) - (model > 0 ? std::log(model) : 0));
      times.push_back(*time);
    }
    if (row.ratios.size() + 1 != steps.size()) continue;  // not active in every step
    row.weight = median(std::move(times)).count();
    rows[static_cast<std::size_t>(*kind)].push_back(std::move(row));
  }
}

double half_width(const std::vector<WeighedValue>& values) {
  return (weighed_quantile(values, 0.8413) - weighed_quantile(values, 0.1587)) / 2;
}

Spreading spreading_of(std::vector<Row>& rows) {
  if (rows.empty()) return {};
  const std::size_t steps = rows.front().ratios.size();
  double sum = 0, squares = 0;
  for (Row& row : rows) {
    std::vector<WeighedValue> own;
    for (const double ratio : row.ratios) own.push_back({ratio, 1});
    const double middle = weighed_quantile(own, 0.5);
    for (double& ratio : row.ratios) ratio -= middle;
    sum += row.weight;
    squares += row.weight * row.weight;
  }
  std::vector<WeighedValue> common, single;
  for (std::size_t s = 0; s < steps; ++s) {
    std::vector<WeighedValue> all;
    for (const Row& row : rows) all.push_back({row.ratios[s], row.weight});
    common.push_back({weighed_quantile(std::move(all), 0.5), 1});
    for (const Row& row : rows) single.push_back({row.ratios[s] - common.back().value, row.weight});
  }
  // A center computed from the same numbers uses up one degree of freedom.
  const double freedom = std::sqrt(static_cast<double>(steps) /
                                   static_cast<double>(std::max<std::size_t>(1, steps - 1)));
  Spreading result{half_width(common) * freedom, half_width(single) * freedom};
  // Deviation of the median of n numbers: √(π/2n) times their deviation.
  const double count = sum * sum / squares;
  const double left = result.op * result.op * std::numbers::pi / 2 / count;
  result.step = std::sqrt(std::max(0.0, result.step * result.step - left));
  return result;
}

}  // namespace

double weighed_quantile(std::vector<WeighedValue> values, double q) {
  POLYPHONY_CHECK(!values.empty() && q >= 0 && q <= 1, values.size() << " values, q " << q);
  std::sort(values.begin(), values.end(),
            [](const WeighedValue& a, const WeighedValue& b) { return a.value < b.value; });
  double all = 0, below = 0;
  for (const WeighedValue& value : values) all += value.weight;
  for (const WeighedValue& value : values) {
    below += value.weight;
    if (below >= q * all) return value.value;
  }
  return values.back().value;
}

std::optional<Jitter> measure_jitter(const std::vector<MeasuredRun>& runs,
                                     const HardwareProfile& profile) {
  // Steps of different runs are independent: each run is measured separately and weighted by its
  // number of steps.
  Jitter jitter;
  std::array<double, kActivityKinds> weight{};
  for (const MeasuredRun& run : runs) {
    if (run.steps.size() < kLeastSteps + 1) continue;
    ActivityRows rows;
    add_rows(run, profile, rows);
    const auto steps = static_cast<double>(run.steps.size() - 1);
    jitter.steps += static_cast<int>(run.steps.size() - 1);
    for (std::size_t kind = 0; kind < kActivityKinds; ++kind) {
      if (rows[kind].empty()) continue;
      const Spreading own = spreading_of(rows[kind]);
      jitter.of[kind].step += steps * own.step * own.step;
      jitter.of[kind].op += steps * own.op * own.op;
      weight[kind] += steps;
    }
  }
  if (jitter.steps == 0) return std::nullopt;
  for (std::size_t kind = 0; kind < kActivityKinds; ++kind) {
    if (weight[kind] == 0) continue;
    jitter.of[kind] = {std::sqrt(jitter.of[kind].step / weight[kind]),
                       std::sqrt(jitter.of[kind].op / weight[kind])};
  }
  return jitter;
}

}  // namespace polyphony::traces
