#include "traces/calibrate/machine_profile.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "shared/hardware/hardware_json.h"
#include "traces/calibrate/fit.h"

namespace polyphony::traces {
namespace {

// Priors of first profiles are guesses: their deviation is ten times their value.
constexpr double kGuessDeviation = 10;
constexpr Seconds kSmallTime{20e-6};   // smallest deviation of the prior of an overhead
constexpr Seconds kRecordNoise{1e-6};  // records are medians of many repeats
constexpr double kFastest =
    0.01;  // lower bound relative to the prior: nothing is a hundred times faster than assumed
// Largest ratio of a GEMM's time to its time at the prior's peak: bf16 without hardware support is
// even slower.
constexpr double kSlowest = 1000;
constexpr double kMostTaken = 0.9;  // of a core (shared/hardware/hardware_json.cpp)

FitParameter overhead(Seconds prior) {
  return {prior.count(), kGuessDeviation * std::max(prior, kSmallTime).count(), 0};
}
FitParameter rate(double seconds_per_unit) {
  return {seconds_per_unit, kGuessDeviation * seconds_per_unit, kFastest * seconds_per_unit};
}
FitParameter link_rate(const Link& link, double efficiency) {
  FitParameter parameter = rate(1 / (link.rate.value * efficiency));
  parameter.lower = 1 / (link.rate.value * kMostOfAssumedLink);
  return parameter;
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
  return fit({std::move(parameters), std::move(rows), std::nullopt, kRecordNoise.count()}).value;
}

double volume(const GemmRecord& r) {
  return static_cast<double>(r.m) * static_cast<double>(r.n) * static_cast<double>(r.k);
}

std::vector<GemmRecord> in_format(const std::vector<GemmRecord>& all, NumberFormat format) {
  std::vector<GemmRecord> result;
  std::copy_if(all.begin(), all.end(), std::back_inserter(result),
               [&](const GemmRecord& r) { return r.format == format; });
  return result;
}

void fit_gemm(HardwareProfile& profile, const std::vector<GemmRecord>& records) {
  if (records.empty()) return;
  const double peak = profile.device.fp32.value;
  const double flop_time = 1 / (peak * profile.gemm_efficiency);
  // θ: seconds per FLOP of a large GEMM; the same times half_size; dispatch.
  FitParameter small = rate(flop_time * std::max(profile.gemm_half_size, 1.0));
  small.lower = 0;
  std::vector<FitRow> rows;
  for (const GemmRecord& r : records) {
    const double flops = 2 * volume(r);
    rows.push_back(
        {r.time.count(), 0, {{0, flops, 0}, {1, flops / std::cbrt(volume(r)), 0}, {2, 1, 0}}});
  }
  const auto value = solve({rate(flop_time), small, overhead(profile.dispatch)}, std::move(rows));
  profile.gemm_efficiency = 1 / (peak * value[0]);
  profile.gemm_half_size = value[1] / value[0];
  profile.dispatch = Seconds(value[2]);
}

// Returns the peak at which bf16 GEMMs reach gemm_efficiency.
void fit_narrow_gemm(HardwareProfile& profile, const std::vector<GemmRecord>& records) {
  if (records.empty()) return;
  std::vector<FitRow> rows;
  for (const GemmRecord& r : records)
    rows.push_back({r.time.count(),
                    profile.dispatch.count(),
                    {{0, 2 * volume(r) * (1 + profile.gemm_half_size / std::cbrt(volume(r))), 0}}});
  FitParameter flop_time = rate(1 / (profile.device.fp32.value * profile.gemm_efficiency));
  flop_time.deviation *= kSlowest;
  profile.device.bf16 =
      FlopsPerSecond(1 / (profile.gemm_efficiency * solve({flop_time}, std::move(rows))[0]));
}

void fit_attention(HardwareProfile& profile, const std::vector<AttentionRecord>& records) {
  if (records.empty()) return;
  const double peak = profile.device.fp32.value;
  const auto reached = [&](bool backward, double prior) {
    std::vector<FitRow> rows;
    for (const AttentionRecord& r : records)
      if (r.backward == backward)
        rows.push_back({r.time.count(), profile.dispatch.count(), {{0, r.flops.value, 0}}});
    if (rows.empty()) return prior;
    return 1 / (peak * solve({rate(1 / (peak * prior))}, std::move(rows))[0]);
  };
  const double forward = reached(false, profile.attention_efficiency);
  // A forward pass that was measured while the machine did other work makes the ratio too large.
  profile.attention_backward =
      std::min(kMostAttentionBackward,
               reached(true, profile.attention_backward * profile.attention_efficiency) / forward);
  profile.attention_efficiency = forward;
}

void fit_memory(HardwareProfile& profile, const MachineRecords& measured) {
  const double peak = profile.device.memory_rate.value;
  // From passes: bytes read and written.
  const auto reached = [&](const auto& records, double sides) {
    std::vector<FitRow> rows;
    for (const auto& r : records)
      rows.push_back(
          {r.time.count(), 0, {{0, sides * static_cast<double>(r.bytes.value), 0}, {1, 1, 0}}});
    if (rows.empty()) return profile.memory_efficiency;
    return 1 /
           (peak * solve({rate(1 / (peak * profile.memory_efficiency)), overhead(profile.dispatch)},
                         std::move(rows))[0]);
  };
  const auto copies = of<MemcpyRecord>(measured);
  profile.memory_efficiency = reached(copies, 2);
  if (!copies.empty())
    profile.optimizer_bytes_efficiency = profile.memory_efficiency;  // without a trace
  profile.memory_efficiency = reached(of<PassRecord>(measured), 1);
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
  const auto value =
      solve({overhead(profile.message_latency), link_rate(link, profile.message_efficiency)},
            std::move(rows));
  profile.message_latency = Seconds(value[0]);
  profile.message_efficiency = std::min(kMostOfAssumedLink, 1 / (link.rate.value * value[1]));
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
  const auto value =
      solve({overhead(profile.collective_latency), link_rate(link, profile.collective_efficiency)},
            std::move(rows));
  profile.collective_latency = Seconds(value[0]);
  profile.collective_efficiency = std::min(kMostOfAssumedLink, 1 / (link.rate.value * value[1]));
  const AllReduceRecord& largest = *std::max_element(
      records.begin(), records.end(),
      [](const AllReduceRecord& a, const AllReduceRecord& b) { return a.bytes < b.bytes; });
  if (largest.processor > Seconds(0))
    profile.stack.taken_inside = std::min(kMostTaken, largest.processor / largest.time);
}

}  // namespace

HardwareProfile fit_machine(const HardwareProfile& prior, const Link& node_link,
                            const MachineRecords& measured, const std::string& name,
                            const std::string& source) {
  HardwareProfile profile = prior;
  const std::vector<GemmRecord> products = of<GemmRecord>(measured);
  fit_gemm(profile, in_format(products, NumberFormat::fp32));
  fit_narrow_gemm(profile, in_format(products, NumberFormat::bf16));
  fit_attention(profile, of<AttentionRecord>(measured));
  fit_memory(profile, measured);
  fit_messages(profile, node_link, of<MessageRecord>(measured));
  fit_collectives(profile, node_link, of<AllReduceRecord>(measured));
  profile.name = name;
  profile.software = measured.software;
  profile.source = source;
  return reached_is_peak(std::move(profile));
}

HardwareProfile reached_is_peak(HardwareProfile profile) {
  Device& device = profile.device;
  const double products = std::max({1.0, profile.gemm_efficiency, profile.attention_efficiency,
                                    profile.early_attention_efficiency});
  for (FlopsPerSecond* peak : {&device.fp32, &device.bf16, &device.fp8, &device.nvfp4})
    *peak = *peak * products;
  for (double* efficiency : {&profile.gemm_efficiency, &profile.attention_efficiency,
                             &profile.early_attention_efficiency})
    *efficiency /= products;
  const double moved =
      std::max({1.0, profile.memory_efficiency, profile.optimizer_bytes_efficiency});
  device.memory_rate = device.memory_rate * moved;
  profile.memory_efficiency /= moved;
  profile.optimizer_bytes_efficiency /= moved;
  return profile;
}

}  // namespace polyphony::traces
