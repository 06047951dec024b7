#include "sim/evidence/kernel_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "shared/text/figure_text.h"
#include "sim/evidence/quick_step.h"
#include "traces/kineto/summary.h"

namespace polyphony::sim {
namespace {

using traces::DeviceEvidence;
using traces::MeasuredGroup;

constexpr double kMostlyKnown = 0.9;  // share of the GEMMs' time whose shapes must be recorded

Flops flops_of(const DeviceEvidence& trace) {
  double flops = 0;
  for (const traces::MeasuredProduct& of : trace.products)
    flops += of.count * traces::flops_of(of.product).value;
  return Flops(flops);
}

Kernel kernel_of(const traces::MatrixProduct& product, NumberFormat precision) {
  Kernel kernel{.kind = KernelKind::gemm, .m = product.m, .n = product.n, .k = product.k};
  kernel.flops = traces::flops_of(product);
  kernel.bytes =
      size_of(precision) *
      (product.batch * (product.m * product.k + product.k * product.n + product.m * product.n));
  return kernel;
}

Flops all_gemms(const GroupTimes& times) { return times.gemm_flops + times.grouped_flops; }

double apart(Flops a, Flops b) {
  return a.value > 0 && b.value > 0 ? std::abs(std::log(a.value / b.value))
                                    : std::numeric_limits<double>::infinity();
}

bool is_measured(const std::vector<DeviceEvidence>& traces, KernelGroup group) {
  return std::any_of(traces.begin(), traces.end(), [&](const DeviceEvidence& trace) {
    return trace.of(group).time > Seconds(0);
  });
}

}  // namespace

KernelRows::KernelRows(const StepEvidence& evidence, const HardwareProfile& profile)
    : evidence_(evidence), program_(quick_step(evidence.scenario, profile).program) {
  by_shape_ =
      !profile.stack.matrix && !profile.stack.eager_attention &&
      std::all_of(evidence.kernels.begin(), evidence.kernels.end(),
                  [](const DeviceEvidence& trace) { return trace.known_products >= kMostlyKnown; });
  for (const DeviceEvidence& trace : evidence.kernels)
    if (!by_shape_ && !trace.separated)
      throw InputError(trace.file, "", "states neither its steps nor the shapes of GEMMs",
                       "name the annotations of steps with --step, or record with "
                       "record_shapes=True and profiler.step()");
  choose_ranks(profile);
  check_flops(profile);
  make_rows(profile);
  if (rows_.empty())
    throw InputError(evidence.source, "",
                     "has no kernels that " + evidence.scenario.file +
                         " predicts: layers with given times have none",
                     "give the model's dimensions, or the step time with --step-time");
}

void KernelRows::choose_ranks(const HardwareProfile& profile) {
  std::vector<Rank> with_ops;
  for (std::uint32_t rank = 0; rank < program_.ranks; ++rank)
    if (const Range ops = program_.ops_of(Rank(rank)); ops.begin < ops.end)
      with_ops.emplace_back(rank);
  const bool all = with_ops.size() == program_.ranks;
  std::vector<Flops> flops;  // by rank with ops, if they are needed
  for (const DeviceEvidence& trace : evidence_.kernels) {
    const auto number = static_cast<std::uint32_t>(trace.rank.value_or(0));
    if (trace.world && *trace.world != static_cast<int>(program_.ranks))
      notes_.push_back(trace.file + ": is of a job of " + std::to_string(*trace.world) +
                       " ranks, the scenario has " + std::to_string(program_.ranks));
    if (!trace.rank && !by_shape_ && with_ops.size() > 1)
      notes_.push_back(trace.file + ": does not state its rank, and is taken to be of rank 0");
    if (all && trace.rank && number < program_.ranks) {
      ranks_.emplace_back(number);
      continue;
    }
    Rank nearest = with_ops.front();
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < with_ops.size(); ++i) {
      if (flops.size() == i)
        flops.push_back(all_gemms(group_times(program_, with_ops[i], profile)));
      const double distance = by_shape_ ? apart(flops_of(trace), flops[i])
                                        : std::abs(stage_of(with_ops[i].value) - stage_of(number));
      if (distance < least) least = distance, nearest = with_ops[i];
    }
    ranks_.push_back(nearest);
  }
}

// Returns the number of a rank's pipeline stage, counted over the stages of all grids in the order
// of the modules; grids on the language module's ranks count as its grid.
int KernelRows::stage_of(std::uint32_t rank) const {
  const std::vector<ModuleLayout>& grids = program_.layout.modules;
  const ModuleLayout& language = grids[language_module(program_.model).value];
  int before = 0;
  for (const ModuleLayout& grid : grids) {
    const ModuleLayout& of = same_ranks(grid, language) ? language : grid;
    const int width = of.ranks / of.pp, at = static_cast<int>(rank) - of.first_rank;
    if (at >= 0 && at < of.ranks) return before + at / width;
    before += of.pp;
  }
  return before;
}

void KernelRows::check_flops(const HardwareProfile& profile) {
  double unknown = 0, known = 0;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const DeviceEvidence& trace = evidence_.kernels[i];
    unknown += trace.unknown.count();
    for (const MeasuredGroup& group : trace.groups) known += group.time.count();
    if (!by_shape_) continue;
    const GroupTimes here = group_times(program_, ranks_[i], profile);
    const bool one_by_one = !is_measured(evidence_.kernels, KernelGroup::grouped_gemm);
    const Flops ours = one_by_one ? all_gemms(here) : here.gemm_flops, theirs = flops_of(trace);
    if (apart(theirs, ours) <= kMostApart) continue;
    matched_ = false;
    notes_.push_back(trace.file + ": the GEMMs of a step have " +
                     number_text(theirs.value / ours.value, 2) + " times the FLOPs of " +
                     evidence_.scenario.file +
                     ": only their rates are used; give the model, layout and batch that were run, "
                     "and a profile of whole steps");
  }
  if (!by_shape_)
    notes_.push_back(evidence_.source +
                     ": the shapes of GEMMs were not recorded or are not comparable, so it is not "
                     "checked that the profile is of this layout and batch (record_shapes=True)");
  constexpr double kFewUnknown = 0.05;
  if (unknown > kFewUnknown * (known + unknown))
    notes_.push_back(evidence_.source + ": " + percent_text(unknown / (known + unknown)) +
                     " of the kernels' time is of kernels that no table has, and is not used "
                     "(`polyphony trace` lists them)");
}

void KernelRows::make_rows(const HardwareProfile& profile) {
  using enum KernelGroup;
  const GroupTimes expected = times(profile);
  const auto predicted = [&](KernelGroup group) { return expected.of[place(group)] > Seconds(0); };
  const auto measured = [&](KernelGroup group) { return is_measured(evidence_.kernels, group); };
  const auto add = [&](std::vector<KernelGroup> groups) { add_row(std::move(groups), expected); };
  if (!matched_) return add({gemm});
  if (expected.linear_attention) {
    notes_.push_back(evidence_.source +
                     ": kernels of linear attention are not told apart from others, so only GEMMs "
                     "are used");
    return add({gemm});
  }
  find_missing(expected);
  if (profile.stack.eager_attention) {
    add({gemm, grouped_gemm, attention_forward, attention_backward, memory_bound});
  } else {
    if (predicted(grouped_gemm) && !measured(grouped_gemm)) {
      by_shape_ = false;
      add({gemm, grouped_gemm});
    } else {
      add({gemm});
      add({grouped_gemm});
    }
    if (predicted(attention_backward) &&
        measured(attention_forward) != measured(attention_backward)) {
      add({attention_forward, attention_backward});
    } else {
      add({attention_forward});
      add({attention_backward});
    }
    add({memory_bound});
  }
  add({optimizer});
}

// Notes the groups that take a hundredth of the predicted kernels and that no trace has. Experts
// and the two directions of attention may be in other groups.
void KernelRows::find_missing(const GroupTimes& expected) {
  constexpr double kFew = 0.01;
  Seconds all{};
  for (const Seconds time : expected.of) all += time;
  for (const KernelGroup group :
       {KernelGroup::gemm, KernelGroup::memory_bound, KernelGroup::optimizer})
    if (expected.of[place(group)] > kFew * all && !is_measured(evidence_.kernels, group))
      missing_ += (missing_.empty() ? "" : ", ") + std::string(name(group));
  if (!missing_.empty())
    notes_.push_back(evidence_.source + ": has no kernels of the kind: " + missing_ +
                     "; its step is not a whole one, and the step time is not used");
}

// Adds no row if its kernels were not measured, or none are predicted.
void KernelRows::add_row(std::vector<KernelGroup> groups, const GroupTimes& expected) {
  KernelRow row;
  double squares = 0;
  Seconds predicted{}, all{};
  std::map<std::string, Seconds> by_name;
  for (const KernelGroup group : groups) {
    row.name += row.name.empty() ? "" : group == groups.back() ? " and " : ", ";
    row.name += name(group);
    for (const DeviceEvidence& trace : evidence_.kernels) {
      const MeasuredGroup& part = trace.of(group);
      row.measured += part.time;
      row.kernels += part.kernels / static_cast<std::int64_t>(trace.steps);
      squares += part.time.count() * part.noise * part.time.count() * part.noise;
      for (const auto& [kernel, time] : part.by_name) by_name[kernel] += time;
    }
    predicted += expected.of[place(group)];
  }
  if (!(row.measured > Seconds(0)) || !(predicted > Seconds(0))) return;
  if (by_shape_ && groups == std::vector{KernelGroup::gemm}) {
    row.measured = Seconds(0);
    for (const DeviceEvidence& trace : evidence_.kernels)
      for (const traces::MeasuredProduct& of : trace.products) row.measured += of.time * of.count;
  }
  const bool grouped = groups == std::vector{KernelGroup::grouped_gemm};
  row.noise =
      std::hypot(grouped ? kGroupedNoise : kKernelNoise, std::sqrt(squares) / row.measured.count());
  Seconds longest{};
  for (const auto& [kernel, time] : by_name) {
    all += time;
    if (time > longest) longest = time, row.longest = kernel;
  }
  row.longest_share = longest / all;
  row.groups = std::move(groups);
  rows_.push_back(std::move(row));
}

GroupTimes KernelRows::times(const HardwareProfile& profile) const {
  GroupTimes all;
  for (const Rank rank : ranks_) {
    const GroupTimes here = group_times(program_, rank, profile);
    for (std::size_t group = 0; group < kKernelGroups; ++group) all.of[group] += here.of[group];
    all.gemm_flops += here.gemm_flops;
    all.grouped_flops += here.grouped_flops;
    all.linear_attention |= here.linear_attention;
  }
  return all;
}

Seconds KernelRows::gemms_by_shape(const HardwareProfile& profile) const {
  const NumberFormat precision = evidence_.scenario.training.precision;
  HardwareProfile without_gaps = profile;
  without_gaps.dispatch = Seconds(0);
  Seconds all{};
  for (const DeviceEvidence& trace : evidence_.kernels)
    for (const traces::MeasuredProduct& of : trace.products)
      all += kernel_time(without_gaps, kernel_of(of.product, precision), precision) * of.count;
  return all;
}

std::vector<Seconds> KernelRows::predicted(const HardwareProfile& profile) const {
  const GroupTimes all = times(profile);
  std::vector<Seconds> predicted;
  for (const KernelRow& row : rows_) {
    Seconds sum{};
    for (const KernelGroup group : row.groups) sum += all.of[place(group)];
    const bool shapes = by_shape_ && row.groups == std::vector{KernelGroup::gemm};
    predicted.push_back(shapes ? gemms_by_shape(profile) : sum);
  }
  return predicted;
}

std::vector<std::string> measured_keys(const std::vector<KernelRow>& rows,
                                       const HardwareProfile& profile) {
  const bool early = profile.stack.early_attention || profile.stack.eager_attention;
  const std::string attention = early ? "early_attention_efficiency" : "attention_efficiency";
  std::vector<std::string> keys;
  for (const KernelRow& row : rows)
    for (const KernelGroup group : row.groups) switch (group) {
        case KernelGroup::gemm:
          keys.emplace_back("gemm_efficiency");
          break;
        case KernelGroup::grouped_gemm:
          keys.emplace_back("grouped_efficiency");
          break;
        case KernelGroup::attention_forward:
          keys.push_back(attention);
          break;
        case KernelGroup::attention_backward:
          for (const char* key : {"attention_backward", "stack.narrow_attention_backward",
                                  "stack.wide_attention_backward"})
            keys.emplace_back(key);
          break;
        case KernelGroup::memory_bound:
          // The rate of the memory is known better than how often a stack moves its rows.
          keys.emplace_back("stack.traffic");
          break;
        case KernelGroup::optimizer:
          keys.emplace_back("optimizer_bytes_efficiency");
          break;
      }
  return keys;
}

}  // namespace polyphony::sim
