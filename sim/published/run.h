// Published rows predicted and judged.
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
  std::string reason;                      // why it was skipped; empty: predicted
  std::string device, stack;               // whose numbers predict it: "a100-80", "fsdp"
  std::string note;                        // what was done otherwise than the row says
  double predicted = 0;                    // in the row's metric and unit
  std::optional<double> error;             // of time or bytes
  Seconds step{}, measured_step{};         // rows of time
  Keeping memory_of = Keeping::polyphony;  // rows of memory: whose lists of tensors
  std::optional<Seconds> naive;
  double naive_efficiency = 0;     // the e of this row alone, before the median
  Layout layout;                   // rows of time
  std::optional<Belief> belief{};  // rows of time, by numbers as shipped
  Certainty certainty;             // of the profile that predicts it
  bool used() const { return reason.empty(); }
  // Duplicates and outliers judge nothing.
  bool counts() const { return used() && row.duplicate_of.empty() && row.outlier.empty(); }
};

// "a100-80.gemm_efficiency" or "fsdp.traffic" → value: what a fit tries.
using Overrides = std::map<std::string, double>;
// Refuses names of no profile or stack, and keys of no number.
void check_overrides(const Overrides& overrides);

void apply_overrides(const Overrides& overrides, HardwareProfile& profile);

// Calls `progress` with the share done. The baseline is not fitted yet.
std::vector<RowResult> run_published(const std::vector<PublishedRow>& rows,
                                     const Overrides& overrides,
                                     const std::function<void(double)>& progress);

}  // namespace polyphony::sim
