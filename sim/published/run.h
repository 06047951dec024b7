// Predicts published measurements and compares the predictions with them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/chance/belief.h"
#include "sim/published/case.h"

namespace polyphony::sim {

struct RowResult {
  PublishedRow row;
  std::string reason;                      // why it was skipped; empty: it was predicted
  std::string device, stack;               // used for the prediction: "a100-80", "fsdp"
  std::string note;                        // what differs from the row
  double predicted = 0;                    // in the row's metric and unit
  std::optional<double> error;             // predicted / measured - 1, of time or bytes
  Seconds step{}, measured_step{};         // for rows of time
  Keeping memory_of = Keeping::polyphony;  // for rows of memory: the software whose rules were used
  std::optional<Seconds> naive;            // step time of the naive baseline (sim/judged/summary.h)
  double naive_efficiency = 0;             // efficiency e of this row alone, before the median
  Layout layout;                           // for rows of time
  std::optional<Belief> belief{};          // for rows of time, without overrides
  Certainty certainty;                     // of the profile used
  bool used() const { return reason.empty(); }
  // Duplicates and outliers are excluded from all statistics.
  bool counts() const { return used() && row.duplicate_of.empty() && row.outlier.empty(); }
};

// Values that replace those of shipped profiles and stacks, for fits. Keys are
// "a100-80.gemm_efficiency" or "fsdp.traffic".
using Overrides = std::map<std::string, double>;
// Throws InputError for an unknown profile or stack, and for a key that is not one of its numbers.
void check_overrides(const Overrides& overrides);

// Sets the values that are for this profile or its stack.
void apply_overrides(const Overrides& overrides, HardwareProfile& profile);

// Predicts all rows; calls `progress` with the share done. `naive` is not fitted yet: fit_naive()
// (sim/judged/summary.h) does that.
std::vector<RowResult> run_published(const std::vector<PublishedRow>& rows,
                                     const Overrides& overrides,
                                     const std::function<void(double)>& progress);

}  // namespace polyphony::sim
