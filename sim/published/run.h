// Published rows predicted and judged.
//   naive baseline   time = F / (gpus · peak · e) · (1 + (pp − 1)/(vpp · microbatches)); F per
//   token
//                    3 · (2 · weights used + 2 · layers · hidden · seq, causal), and one forward of
//                    the layers under full recomputation; e, one per block, GPU and precision, the
//                    median over the other rows (leave-one-out)
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/published/case.h"
#include "sim/published/statistics.h"

namespace polyphony::sim {

struct RowResult {
  PublishedRow row;
  std::string reason;               // why it was skipped; empty: predicted
  double predicted = 0;             // in the row's metric and unit
  std::optional<double> error;      // of time or bytes
  Seconds step{}, measured_step{};  // rows of time
  std::optional<Seconds> naive;
  double naive_efficiency = 0;  // the e of this row alone, before the median
  bool used() const { return reason.empty(); }
};

// "a100-80.gemm_efficiency" or "fsdp.traffic" → value: what a fit tries.
using Overrides = std::map<std::string, double>;
// Refuses names of no profile or stack, and keys of no number.
void check_overrides(const Overrides& overrides);

void apply_overrides(const Overrides& overrides, HardwareProfile& profile);

// The naive baseline of rows that have its work alone so far, fitted over all of them.
void fit_naive(std::vector<RowResult>& results);

// Calls `progress` with the share done. The baseline is not fitted yet.
std::vector<RowResult> run_published(const std::vector<PublishedRow>& rows,
                                     const Overrides& overrides,
                                     const std::function<void(double)>& progress);

struct Group {
  Errors ours;
  Errors naive;  // over the rows that have a baseline
};
struct BlockSummary {
  std::string block;
  bool memory = false;
  std::size_t rows = 0, skipped = 0, duplicates = 0, outliers = 0;
  Group complete, assumed;       // without duplicates and outliers
  std::optional<double> tau;     // mean over families of at least five layouts
  std::optional<double> regret;  // mean over questions
  std::size_t families = 0, questions = 0;
};
std::vector<BlockSummary> summarize_blocks(const std::vector<RowResult>& results);

}  // namespace polyphony::sim
