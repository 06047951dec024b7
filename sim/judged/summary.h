// Predicted rows judged: by block, by part of a block, and across blocks.
//   naive baseline   time = F / (gpus · peak · e) · (1 + (pp − 1)/(vpp · microbatches)); F per token
//                    3 · (2 · weights used + 2 · layers · hidden · seq, causal), and one forward of
//                    the layers under full recomputation; e, one per block, GPU and precision, the
//                    median over the other rows (leave-one-out)
// Duplicates and outliers are left out everywhere.
#pragma once

#include "sim/judged/statistics.h"
#include "sim/published/run.h"

namespace polyphony::sim {

// The naive baseline of rows that have its work alone so far, fitted over all of them.
void fit_naive(std::vector<RowResult>& results);

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

// Rows of time of one block ("mbridge") or of one framework, whatever the block: by GPU and kind
// (dense, MoE, NVFP4), and by format where a block has several.
struct Part {
  std::string of, part;
  Group all;  // complete and assumed rows
};
std::vector<Part> summarize_parts(const std::vector<RowResult>& results);

}  // namespace polyphony::sim
