#include "traces/calibrate/machine_profile.h"

#include <algorithm>
#include <cmath>

#include "traces/calibrate/fit.h"

namespace polyphony::traces {
namespace {

// Priors of first profiles are guesses: ten times their own size wide.
constexpr double kPriorDeviation = 10;
constexpr Seconds kSmallTime{20e-6};  // so wide at least is the prior of an overhead
constexpr Seconds kClockNoise{1e-6};  // records are medians of many repeats
constexpr double kLeastRatio =
    0.01;  // of the prior: nothing is a hundred times faster than assumed

FitParameter overhead(Seconds prior) {
  return {prior.count(), kPriorDeviation * std::max(prior, kSmallTime).count(), 0};
}
FitParameter rate(double seconds_per_unit) {
  return {seconds_per_unit, kPriorDeviation * seconds_per_unit, kLeastRatio * seconds_per_unit};
}

template <class Record>
std::vector<Record> of(const MachineRecords& measured) {
  std::vector<Record> result;
  for (const MachineRecord& record : measured.records) {
    if (const auto* found = std::get_if<Record>(&record)) result.push_back(*found);
  }
  return result;
}

std::vector<double> solve(std::vector<FitParameter> parameters, std::vector<FitRow> rows) {
  return fit({std::move(parameters), std::move(rows), std::nullopt, kClockNoise.count()}).value;
}

void fit_gemm(HardwareProfile& profile, const std::vector<GemmRecord>& records) {
  if (records.empty()) return;
  const double peak = profile.device.fp32.value;
  const double flop_time = 1 / (peak * profile.gemm_efficiency);
  // θ: seconds per flop of a large product; that times half_size; dispatch.
  FitParameter small = rate(flop_time * std::max(profile.gemm_half_size, 1.0));
  small.lower = 0;
  std::vector<FitRow> rows;
  for (const GemmRecord& r : records) {
    const double volume =
        static_cast<double>(r.m) * static_cast<double>(r.n) * static_cast<double>(r.k);
    rows.push_back({r.time.count(),
                    0,
                    {{0, 2 * volume, 0}, {1, 2 * volume / std::cbrt(volume), 0}, {2, 1, 0}}});
  }
  const auto value = solve({rate(flop_time), small, overhead(profile.dispatch)}, std::move(rows));
  profile.gemm_efficiency = 1 / (peak * value[0]);
  profile.gemm_half_size = value[1] / value[0];
  profile.dispatch = Seconds(value[2]);
}

void fit_attention(HardwareProfile& profile, const std::vector<AttentionRecord>& records) {
  if (records.empty()) return;
  const double peak = profile.device.fp32.value;
  std::vector<FitRow> rows;
  for (const AttentionRecord& r : records)
    rows.push_back({r.time.count(), profile.dispatch.count(), {{0, r.flops.value, 0}}});
  profile.attention_efficiency =
      1 / (peak * solve({rate(1 / (peak * profile.attention_efficiency))}, std::move(rows))[0]);
}

void fit_memory(HardwareProfile& profile, const std::vector<MemcpyRecord>& records) {
  if (records.empty()) return;
  const double peak = profile.device.memory_rate.value;
  std::vector<FitRow> rows;
  for (const MemcpyRecord& r : records) {
    rows.push_back(
        {r.time.count(), 0, {{0, 2 * static_cast<double>(r.bytes.value), 0}, {1, 1, 0}}});
  }
  const auto value = solve(
      {rate(1 / (peak * profile.memory_efficiency)), overhead(profile.dispatch)}, std::move(rows));
  profile.memory_efficiency = 1 / (peak * value[0]);
  profile.optimizer_bytes_efficiency = profile.memory_efficiency;  // until a trace says better
}

void fit_messages(HardwareProfile& profile, const Link& link,
                  const std::vector<MessageRecord>& records) {
  if (records.empty()) return;
  std::vector<FitRow> rows;
  for (const MessageRecord& r : records) {
    rows.push_back({r.time.count(),
                    link.latency.count(),
                    {{0, 1, 0}, {1, static_cast<double>(r.bytes.value), 0}}});
  }
  const auto value = solve(
      {overhead(profile.message_latency), rate(1 / (link.rate.value * profile.message_efficiency))},
      std::move(rows));
  profile.message_latency = Seconds(value[0]);
  profile.message_efficiency = 1 / (link.rate.value * value[1]);
}

void fit_collectives(HardwareProfile& profile, const Link& link,
                     const std::vector<AllReduceRecord>& records) {
  if (records.empty()) return;
  std::vector<FitRow> rows;
  for (const AllReduceRecord& r : records) {
    const double hops = 2.0 * (r.ranks - 1);
    const double bytes = hops / r.ranks * static_cast<double>(r.bytes.value);
    rows.push_back({r.time.count(), hops * link.latency.count(), {{0, hops, 0}, {1, bytes, 0}}});
  }
  const auto value = solve({overhead(profile.collective_latency),
                            rate(1 / (link.rate.value * profile.collective_efficiency))},
                           std::move(rows));
  profile.collective_latency = Seconds(value[0]);
  profile.collective_efficiency = 1 / (link.rate.value * value[1]);
}

}  // namespace

HardwareProfile fit_machine(const HardwareProfile& prior, const Link& node_link,
                            const MachineRecords& measured, const std::string& name,
                            const std::string& source) {
  HardwareProfile profile = prior;
  fit_gemm(profile, of<GemmRecord>(measured));
  fit_attention(profile, of<AttentionRecord>(measured));
  fit_memory(profile, of<MemcpyRecord>(measured));
  fit_messages(profile, node_link, of<MessageRecord>(measured));
  fit_collectives(profile, node_link, of<AllReduceRecord>(measured));
  profile.name = name;
  profile.software = measured.software;
  profile.source = source;
  return profile;
}

}  // namespace polyphony::traces
