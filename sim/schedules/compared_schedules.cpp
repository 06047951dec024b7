#include "sim/schedules/compared_schedules.h"

#include <algorithm>
#include <numeric>

#include "shared/planner/makespan_bound.h"
#include "shared/random.h"
#include "sim/schedules/stage_splits.h"

namespace polyphony::sim {
namespace {

std::string why_refused(const Scheme& scheme, const StageTimes& times,
                        const CompareOptions& options) {
  if (!scheme.settings.empty()) return "no setting can run";
  for (const Schedule& row : kSchedules) {
    if (scheme.name != row.name) continue;
    for (int v = 1; v <= kMostRounds; ++v)
      if (row.refusal({options.ranks, v, times.microbatches, 0}).empty())
        return "needs " + std::to_string(v * options.ranks) + " stages, but there are only " +
               std::to_string(chained(times).pieces) + " pieces";
    return row.refusal({options.ranks, 2, times.microbatches, 0});
  }
  return "the modules have too few pieces, or the pipeline has too few ranks";
}

bool splits_backwards(const Timetable& table) {
  for (const auto& rank : table.ranks)
    for (const TimedAction& timed : rank)
      if (timed.action.kind == ActionKind::backward_input) return true;
  return false;
}

ComparedSchedule best_of(const Scheme& scheme, const StageTimes& times,
                         const CompareOptions& options, const ScheduleSetting** chosen) {
  ComparedSchedule best{scheme.name, "", why_refused(scheme, times, options), {}, {}};
  Bytes least{};
  for (const ScheduleSetting& setting : scheme.settings) {
    Arranged made = setting.arrange(times);
    if (made.orders.empty()) {
      if (best.costs.branches.empty() && !made.refusal.empty()) best.refusal = made.refusal;
      continue;
    }
    auto outcome = timetable(made.costs, made.orders);
    if (const auto* no = std::get_if<Infeasible>(&outcome)) {
      if (best.costs.branches.empty()) best.refusal = no->reason;
      continue;
    }
    auto& table = std::get<Timetable>(outcome);
    const Bytes peak = *std::max_element(table.peak.begin(), table.peak.end());
    const bool fits = !options.memory || peak <= *options.memory;
    const bool better = best.costs.branches.empty() || (fits && !best.fits) ||
                        (fits && best.fits && table.makespan < best.table.makespan) ||
                        (!fits && !best.fits && peak < least);
    if (!better) continue;
    least = peak;
    best = {scheme.name, setting.name, "", std::move(made.costs), std::move(table)};
    best.fits = fits;
    *chosen = &setting;
  }
  if (best.refusal.empty())
    best.bound = makespan_bound(best.costs, splits_backwards(best.table)).value();
  return best;
}

// Returns a batch of as many microbatches, each drawn from those given, with all its works.
StageTimes drawn(const StageTimes& times, std::uint64_t seed) {
  StageTimes batch{times.microbatches, times.modules};
  std::vector<int> from;
  for (int k = 0; k < times.microbatches; ++k)
    from.push_back(
        static_cast<int>(random_uniform(seed, static_cast<std::uint64_t>(k)) * times.microbatches));
  for (std::size_t m = 0; m < times.modules.size(); ++m) {
    const ModuleTimes& module = times.modules[m];
    ModuleTimes& to = batch.modules[m];
    std::vector<int> works;
    to.microbatch_of.clear();
    to.costs.clear();
    for (int k = 0; k < times.microbatches; ++k)
      for (std::size_t w = 0; w < module.microbatch_of.size(); ++w)
        if (module.microbatch_of[w] == from[static_cast<std::size_t>(k)]) {
          works.push_back(static_cast<int>(w));
          to.microbatch_of.push_back(k);
        }
    for (int piece = 0; piece < module.pieces; ++piece)
      for (const int w : works) to.costs.push_back(module.cost(piece, w));
  }
  return batch;
}

// Returns a lower bound for any schedule. Parts in encoders may run on several ranks at once, so
// the longest dependency chain is that of the last module.
Seconds bound_of_any(const StageTimes& times, int ranks) {
  Seconds sum{}, longest{};
  for (const ModuleTimes& module : times.modules)
    for (const StageCost& cost : module.costs) sum += seconds(cost);
  const ModuleTimes& last = times.modules.back();
  for (std::size_t w = 0; w < last.microbatch_of.size(); ++w) {
    Seconds chain{};
    for (int piece = 0; piece < last.pieces; ++piece) {
      const StageCost& cost = last.cost(piece, static_cast<int>(w));
      chain += cost.forward + cost.input;
    }
    longest = std::max(longest, chain);
  }
  return std::max(sum / ranks, longest);
}

// Returns the order of the rows: those that fit first, fastest first; refused ones last.
std::vector<std::size_t> in_order(const std::vector<ComparedSchedule>& rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    const ComparedSchedule &a = rows[i], &b = rows[j];
    if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
    if (!a.refusal.empty()) return false;
    if (a.fits != b.fits) return a.fits;
    return a.table.makespan < b.table.makespan;
  });
  return order;
}

}  // namespace

std::vector<double> bubbles(const Timetable& table) {
  std::vector<double> shares;
  for (const Seconds busy : table.busy)
    shares.push_back(table.makespan > Seconds(0) ? 1 - busy / table.makespan : 0);
  return shares;
}

std::vector<std::string> scheme_names(const StageTimes& times, const CompareOptions& options) {
  std::vector<std::string> names;
  for (const Scheme& scheme : schemes(times, options)) names.push_back(scheme.name);
  names.push_back(kSearched);
  return names;
}

ScheduleComparison compare_schedules(const StageTimes& times, const CompareOptions& options) {
  ScheduleComparison result{bound_of_any(times, options.ranks), {}};
  std::vector<StageTimes> batches;
  for (int d = 0; d < options.draws; ++d)
    batches.push_back(drawn(times, static_cast<std::uint64_t>(d)));
  std::vector<Scheme> all = schemes(times, options);
  std::vector<const ScheduleSetting*> chosen;  // by row
  const auto add = [&](const Scheme& scheme) {
    chosen.push_back(nullptr);
    result.rows.push_back(best_of(scheme, times, options, &chosen.back()));
    if (!options.only.empty() && scheme.name != options.only) return;
    ComparedSchedule& row = result.rows.back();
    for (std::size_t d = 0; chosen.back() != nullptr && d < batches.size(); ++d) {
      const Arranged made = chosen.back()->arrange(batches[d]);
      if (made.orders.empty()) continue;
      const auto outcome = timetable(made.costs, made.orders);
      if (const auto* table = std::get_if<Timetable>(&outcome))
        row.drawn.push_back(table->makespan);
    }
    std::sort(row.drawn.begin(), row.drawn.end());
  };
  for (const Scheme& scheme : all)
    if (options.only.empty() || options.only == kSearched || scheme.name == options.only)
      add(scheme);
  Scheme last;
  if (options.only.empty() || options.only == kSearched) {
    std::vector<std::pair<std::string, const ScheduleSetting*>> from;
    std::vector<std::size_t> taken;
    for (const std::size_t i : in_order(result.rows)) {
      const ComparedSchedule& row = result.rows[i];
      const bool again = std::any_of(taken.begin(), taken.end(), [&](std::size_t other) {
        return result.rows[other].costs.branches == row.costs.branches;
      });
      if (!row.refusal.empty() || again) continue;
      taken.push_back(i);
      from.emplace_back(row.name + (row.setting.empty() ? "" : ", ") + row.setting, chosen[i]);
    }
    last = searched(from, options);
    add(last);
  }
  std::vector<ComparedSchedule> rows;
  for (const std::size_t i : in_order(result.rows))
    if (options.only.empty() || result.rows[i].name == options.only)
      rows.push_back(std::move(result.rows[i]));
  result.rows = std::move(rows);
  return result;
}

}  // namespace polyphony::sim
