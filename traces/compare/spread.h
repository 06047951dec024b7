// Summarizes a sample of measured times by its median and its repeatability.
//
//   repeatability = half the interquartile range over the median: a quarter of the runs lie further
//   above, a quarter further below.
//
// Chosen over the standard deviation (a single scheduler hiccup dominates it) and over (p90 -
// p10)/2 (needs tens of runs; also reported).
//
// Source: medians and quantiles for timings, Hoefler & Belli, SC15 "Scientific Benchmarking of
// Parallel Computing Systems", rules 5-7; quantiles by linear interpolation, Hyndman & Fan 1996,
// definition 7.
#pragma once

#include <vector>

#include "shared/units.h"

namespace polyphony::traces {

struct Spread {
  std::size_t count = 0;
  Seconds median{}, p10{}, p25{}, p75{}, p90{};
  // Mean of the times after clamping them to [p10, p90]. The times of a step's parts are skewed:
  // their means add up to the step time, their medians to less.
  Seconds mean{};
  double repeatability() const;  // relative; 0 for fewer than two runs
  bool operator==(const Spread&) const = default;
};
Spread spread(std::vector<Seconds> times);

// Returns the q-quantile, q in [0, 1]. The times must be sorted and not empty.
Seconds quantile(const std::vector<Seconds>& sorted, double q);
Seconds median(std::vector<Seconds> times);

}  // namespace polyphony::traces
